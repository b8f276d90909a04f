"""Whether Triton kernels run on a device is asked in one place, and what runs where there are none."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from kernels.triton_here import DEVICE, needs_kernel
from regard.core.device import move
from regard.core.registry import build
from regard.decoding.ending import Limits
from regard.decoding.engine import Engine
from regard.decoding.logits_processing import GREEDY
from regard.kernels import choice, cross_entropy, operators
from regard.layers.linear import Linear, linear_sum, to_classes
from regard.layers.norm import LayerNorm, RmsNorm

MODULES = (
    "convolution_triton",
    "cross_entropy_triton",
    "decode_attention_triton",
    "decode_linear_triton",
    "decode_rows_triton",
    "draw_triton",
    "gated_norm_triton",
    "greedy_triton",
    "norm_triton",
    "selective_scan_launch",
    "slots_triton",
    "ssd_launch",
    "state_step_triton",
)


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A machine with two cards; what it gives is the number of the current one."""
    current = [0]
    monkeypatch.setattr(choice, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9 - 2 * (device.index == 1), 0))
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: current.__setitem__(0, device.index))
    for kept in (choice._has_triton, choice._cards):
        kept.cache_clear()
    yield current
    monkeypatch.undo()
    for kept in (choice._has_triton, choice._cards):
        kept.cache_clear()


def test_kernels_run_on_the_current_card_alone(cards: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))
    first, second = torch.device("cuda", 0), torch.device("cuda", 1)
    assert choice.has_triton(first)
    assert not choice.has_triton(second)
    move(nn.Identity(), second)
    assert cards == [1]
    assert choice.has_triton(second)
    assert not choice.has_triton(first)


def test_a_card_without_products_in_bfloat16_has_none(cards: list[int]) -> None:
    cards[0] = 1
    assert not choice.has_triton(torch.device("cuda", 1))


def test_what_is_compiled_without_gradients_says_nothing() -> None:
    layer = Linear(4, 4)
    norm = RmsNorm(4)
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(lambda x: norm(layer(x)), backend="eager")(torch.randn(2, 4))


@needs_kernel
@torch.no_grad()
def test_a_layer_norm_without_a_bias_is_one() -> None:
    torch.manual_seed(0)
    x = 3 + torch.randn(2, 8, device=DEVICE)
    norm = LayerNorm(8, bias=False).to(DEVICE)
    torch.testing.assert_close(norm(x), nn.functional.layer_norm(x, (8,)))
    bare = LayerNorm(8, elementwise_affine=False).to(DEVICE)
    torch.testing.assert_close(bare(x), nn.functional.layer_norm(x, (8,)))


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels are to run, and none can be built."""
    operators._fallbacks.clear()
    monkeypatch.setattr(choice, "_has_triton", lambda _device: True)
    for name in MODULES:
        monkeypatch.setitem(sys.modules, f"regard.kernels.{name}", None)
    yield
    operators._fallbacks.clear()


def loss(x: Tensor) -> Tensor:
    targets = torch.tensor([0, -100, 6], device=x.device)
    hidden, weight = torch.cat([x, x])[:3].requires_grad_(), torch.ones(7, 8, device=x.device)
    with torch.enable_grad():
        found = cross_entropy.linear_cross_entropy(hidden, weight, None, targets)
        return torch.autograd.grad(found, hidden)[0]


def maps(x: Tensor) -> Tensor:
    weight = torch.eye(8, device=x.device)
    layer = Linear(8, 8).to(x.device)
    layer.load_state_dict({"weight": weight, "bias": weight[0]})
    return layer(x, "gelu", x) + to_classes(x, weight, None) + linear_sum(x, weight, None, x)


PARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "norms": lambda x: LayerNorm(8).to(x.device)(x, x)[1],
    "linear maps of few rows": maps,
    "the cross-entropy": loss,
}


@torch.no_grad()
@pytest.mark.parametrize("name", PARTS)
def test_a_part_without_its_kernel_gives_the_readable_numbers(
    name: str, without: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "WORTH_CHUNKING", 0)
    torch.manual_seed(0)
    x = torch.randn(2, 8, device=DEVICE)
    with pytest.warns(UserWarning, match=f"no kernel for {name}, whose readable form runs instead"):
        found = PARTS[name](x)
    monkeypatch.setattr(choice, "_has_triton", lambda _device: False)
    torch.testing.assert_close(found, PARTS[name](x))
    assert operators.kernel_fallbacks().keys() == {name}


@pytest.mark.parametrize("name", ["gpt", "mamba", "mamba2", "lstm"])
def test_a_text_is_written_where_no_kernel_can_be_built(
    name: str, without: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> list[int]:
        torch.manual_seed(0)
        model = build(name, vocab_size=11, size="tiny").to(DEVICE).eval()
        with Engine(model, 2, ahead=2) as engine:
            for row in range(2):
                engine.submit([1, 2], Limits(4), GREEDY, seed=5, row=row)
            found = []
            while engine.busy:
                found += [(drawn.request, drawn.token) for drawn in engine.step()]
        return [token for _, token in sorted(found)]

    with pytest.warns(UserWarning, match="no kernel for"):
        found = written()
    counted = operators.kernel_fallbacks()
    assert {"drawing", "the books of a step", "linear maps of few rows"} <= counted.keys()
    monkeypatch.setattr(choice, "_has_triton", lambda _device: False)
    assert found == written()
    assert operators.kernel_fallbacks() == counted
