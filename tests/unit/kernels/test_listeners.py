"""Who listens to a part of a model sees, and changes, the same with and without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from kernels.triton_here import DEVICE, INTERPRETED
from regard.core.registry import build
from regard.core.stack import BlockConfig
from regard.core.tap import is_heard
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.lstm import LstmConfig
from regard.serving import wanted

MODELS: dict[str, dict[str, Any]] = {
    "gpt": {"position": "learned", "norm": "layer", "activation": "gelu_tanh", "qk_norm": False, "bias": True},
    "gpt-modern": {"qk_norm": True},
    "mamba": {},
    "mamba2": {},
    "lstm": {},
}
# Of the first layer: what kernels go around or do more of. In the interpreter, where a step takes seconds, these alone.
FUSED = {"mlp", "mlp_norm", "mixer_norm", "dropout", "input_to_hidden", "hidden_to_output", "score", "key_norm", "norm"}
Seen = list[Tensor]


def model_named(name: str) -> nn.Module:
    torch.manual_seed(0)
    return build(name.partition("-")[0], vocab_size=11, size="tiny", **MODELS[name]).to(DEVICE).eval()


def parts_of(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for place, part in model.named_modules():
        if not INTERPRETED or (place.startswith("stack.layers.0.") and place.rpartition(".")[2] in FUSED):
            yield place, part


def tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value.detach().float().clone()
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)


@contextmanager
def after(part: nn.Module) -> Iterator[Seen]:
    seen: Seen = []
    handle = part.register_forward_hook(lambda _part, inputs, output: seen.extend(tensors((inputs, output))))
    yield seen
    handle.remove()


@contextmanager
def before(part: nn.Module) -> Iterator[Seen]:
    seen: Seen = []
    handle = part.register_forward_pre_hook(lambda _part, inputs: seen.extend(tensors(inputs)))
    yield seen
    handle.remove()


def read(model: nn.Module) -> Tensor:
    """Two tokens, and one more from a state with room, as a step of decoding is."""
    tokens = torch.tensor([[3, 5]], device=DEVICE)
    _, state = model(tokens, model.init_state(1).reserve(4))
    return model.head(torch.cat([model(tokens)[0], model(tokens[:, :1], state)[0]], 1))


def silent(_part: nn.Module, _inputs: object, output: Any) -> Any:
    return (torch.zeros_like(output[0]), *output[1:]) if isinstance(output, tuple) else torch.zeros_like(output)


def same(found: Seen, expected: Seen) -> bool:
    alike = [a.shape == b.shape and torch.allclose(a, b, atol=1e-5) for a, b in zip(found, expected, strict=False)]
    return len(found) == len(expected) and all(alike)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("listen", [after, before])
@pytest.mark.parametrize("name", MODELS)
def test_every_part_shows_the_same_without_gradients(name: str, listen: Callable[[nn.Module], Any]) -> None:
    model, wrong = model_named(name), []
    for place, part in parts_of(model):
        with listen(part) as expected:
            read(model)
        with listen(part) as found, torch.no_grad():
            read(model)
        if not same(found, expected):
            wrong.append(place)
    assert wrong == []


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", MODELS)
def test_a_part_that_is_silenced_is_silent_without_gradients(name: str) -> None:
    model, wrong = model_named(name), []
    for place, part in parts_of(model):
        if any(part.children()):
            continue
        handle = part.register_forward_hook(silent)
        expected = read(model)
        with torch.no_grad():
            if not torch.allclose(read(model), expected, atol=1e-4):
                wrong.append(place)
        handle.remove()
    assert wrong == []


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_norm_after_the_sum_shows_the_sum(dropout: float) -> None:
    parts = {"mlp": MlpConfig(8, 16), "norm": NormConfig(8), "placement": "after", "dropout": dropout}
    block = BlockConfig(8, LstmConfig(8), **parts).build().to(DEVICE).eval()
    x = torch.randn(1, 2, 8, device=DEVICE)
    for part in (block.mixer_norm, block.mlp_norm, block.dropout, block.mlp.hidden_to_output):
        with before(part) as expected:
            block(x)
        with before(part) as found, torch.no_grad():
            block(x)
        assert same(found, expected)


@pytest.mark.parametrize("graded", [True, False])
def test_a_map_shows_what_it_gives_before_its_activation(graded: bool) -> None:
    net = MlpConfig(8, 16).build().to(DEVICE)
    x = torch.randn(1, 2, 8, device=DEVICE)
    with torch.set_grad_enabled(graded), after(net.input_to_hidden) as seen:
        net(x)
    own = nn.functional.linear(x, net.input_to_hidden.weight, net.input_to_hidden.bias)
    assert same(seen, [x, own])


def test_a_hook_of_all_modules_counts_and_one_that_only_asks_does_not() -> None:
    part = nn.Linear(2, 2)
    wanted.watched(part)
    assert not is_heard(part)
    handle = register_module_forward_hook(lambda *_: None)
    assert is_heard(part)
    handle.remove()
    part.register_forward_pre_hook(lambda *_: None)
    assert is_heard(part)
