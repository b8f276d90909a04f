"""SSD by compiled C is the recurrence of float64: outputs, last state and every gradient; what others must see is left
to the readable form."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

from regard.core.tap import record
from regard.kernels import compiled_call, ssd_cpu
from regard.kernels.compiled import library
from regard.kernels.compiled_call import loaded
from regard.kernels.ssd import ssd, ssd_kernels_take
from regard.kernels.ssd_readable import ssd_recurrent
from regard.mixers.ssd import SsdConfig

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")
NAMES = ("x", "dt", "decay", "b", "c", "skip", "h")
Pass = Callable[..., tuple[Tensor, Tensor]]


@pytest.fixture(autouse=True)
def _all_sizes_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssd_cpu, "WORTH_A_CALL", 1)


def drawn(batch: int, length: int, heads: int, width: int, groups: int, states: int) -> list[Tensor]:
    """x, b and c that are parts of one tensor, as the convolution gives them, dt, decay, skip and h."""
    torch.manual_seed(length)
    inner, maps = heads * width, groups * states
    x, b, c = torch.randn(batch, length, inner + 2 * maps).split([inner, maps, maps], -1)
    steps = torch.rand(batch, length, heads)
    x, b, c = x.unflatten(-1, (heads, width)), b.unflatten(-1, (groups, states)), c.unflatten(-1, (groups, states))
    return [x, steps, -0.3 * steps, b, c, torch.randn(heads), torch.randn(batch, heads, width, states)]


def exact(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    y, last = ssd_recurrent(x * dt[..., None], decay, b, c, h)
    return y + skip[:, None] * x, last


def results(function: Pass, inputs: list[Tensor]) -> dict[str, Tensor]:
    """Everything that a pass forward and back gives."""
    leaves = [t.detach().requires_grad_() for t in inputs]
    y, last = function(*leaves)
    weights = torch.cos(torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape)
    loss = (y * weights).sum() + (last.double() ** 2).sum() / 2
    gradients = torch.autograd.grad(loss, leaves)
    found = {"y": y, "last": last, **{f"d_{name}": g for name, g in zip(NAMES, gradients, strict=True)}}
    return {name: value.detach() for name, value in found.items()}


def compare(inputs: list[Tensor], tolerance: float = 1e-6) -> None:
    assert ssd_kernels_take(*inputs)
    found, right = results(ssd, inputs), results(exact, [t.double() for t in inputs])
    for name, expected in right.items():
        error = (found[name].double() - expected).norm() / expected.norm().clamp(min=1e-30)
        assert error < tolerance, f"{name} is off by {error:.1e}"


@pytest.mark.parametrize("length", [1, 2, 15, 31, 32, 33, 64, 70])
def test_any_length_from_any_state(length: int) -> None:
    compare(drawn(2, length, 2, 16, 1, 16))


@pytest.mark.parametrize(("heads", "groups"), [(4, 2), (3, 3), (9, 1), (1, 1), (40, 1)])
def test_heads_of_a_group_share_their_maps(heads: int, groups: int) -> None:
    compare(drawn(1, 37, heads, 16, groups, 16))


@pytest.mark.parametrize("batch", [1, 3, 20])
@pytest.mark.parametrize(("width", "states"), [(1, 1), (3, 5), (20, 24), (16, 40), (64, 64), (70, 130)])
def test_widths_that_are_no_whole_vectors(width: int, states: int, batch: int) -> None:
    compare(drawn(batch, 35, 2, width, 1, states))


@pytest.mark.parametrize("strength", [1e3, 1e6, 3e38, math.inf])
def test_what_follows_a_strong_forget_keeps_its_precision(strength: float) -> None:
    inputs = drawn(2, 40, 2, 16, 1, 16)
    inputs[2][:, 5] = inputs[2][0, 20] = -strength
    compare(inputs)


@pytest.mark.parametrize("decay", [0.0, -1e-4, -4.0, -40.0])
def test_long_texts_with_any_memory(decay: float) -> None:
    inputs = drawn(1, 1500, 2, 8, 1, 8)
    inputs[2] = torch.full_like(inputs[2], decay)
    compare(inputs, 1e-5)


def test_padding_leaves_the_state_as_it_is() -> None:
    inputs = drawn(1, 40, 2, 16, 1, 16)
    inputs[1][:, 33:], inputs[2][:, 33:] = 0, 0
    y, last = ssd(*inputs)
    y_alone, alone = ssd(*[t[:, :33] for t in inputs[:5]], *inputs[5:])
    assert torch.equal(last, alone)
    assert torch.equal(y[:, :33], y_alone)


def test_chunks_of_a_text_one_after_the_other_are_the_text() -> None:
    inputs = drawn(2, 90, 4, 16, 2, 16)
    y, last = ssd(*inputs)
    first, h = ssd(*[t[:, :50] for t in inputs[:5]], *inputs[5:])
    rest = [*(t[:, 50:] for t in inputs[:5]), inputs[5], h]
    second, h = ssd(*rest)
    torch.testing.assert_close(torch.cat([first, second], 1), y)
    torch.testing.assert_close(h, last)


def test_numbers_may_lie_in_any_order() -> None:
    inputs = drawn(2, 40, 4, 16, 2, 16)
    turned = [t.transpose(0, -1).contiguous().transpose(0, -1) for t in inputs]
    one, other = results(ssd, inputs), results(ssd, turned)
    assert all(torch.equal(one[name], other[name]) for name in one)
    leaf = inputs[0].clone().requires_grad_()
    ssd(leaf, *inputs[1:])[0].sum().backward()  # whose gradient is one number, many times
    assert leaf.grad is not None
    given = leaf.detach().double().requires_grad_()
    exact(given, *(t.double() for t in inputs[1:]))[0].sum().backward()
    assert given.grad is not None
    torch.testing.assert_close(leaf.grad.double(), given.grad, rtol=1e-5, atol=1e-5)


def test_the_same_bits_for_any_number_of_threads() -> None:
    inputs = drawn(2, 300, 12, 24, 2, 20)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(results(ssd, inputs))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(found[0][name], other[name]) for name in other)


def test_the_room_of_long_texts_does_not_grow_with_threads_that_have_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    x, maps = torch.empty(1, 49_152, 32, 64, device="meta"), torch.empty(1, 49_152, 1, 128, device="meta")
    sizes = ssd_cpu._sizes([x, x, x, maps, maps, x, x], x)
    assert loaded().ssd_room(sizes, 1) < 2 * x.numel()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("which", range(7))
def test_what_is_no_number_spoils_its_own_text_alone(bad: float, which: int) -> None:
    inputs = drawn(3, 70, 2, 5, 1, 7)
    right = results(ssd, inputs)
    alone = NAMES[which] != "skip"
    inputs[which][1 if alone else slice(None)] = bad
    found = results(ssd, inputs)
    assert not found["y"][1].isfinite().any()
    for name in ("y", "last", "d_x", "d_dt", "d_decay", "d_b", "d_c", "d_h") if alone else ():
        assert torch.equal(found[name][::2], right[name][::2]), name


def test_gradients_of_gradients_are_those_of_the_recurrence() -> None:
    def size(function: Pass, inputs: list[Tensor]) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in inputs]
        y, last = function(*leaves)
        first = torch.autograd.grad(y.square().sum() + last.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(torch.stack([part.square().sum() for part in first]).sum(), leaves)

    inputs = [0.3 * t for t in drawn(1, 9, 2, 3, 1, 2)]
    for found, right in zip(size(ssd, inputs), size(exact, [t.double() for t in inputs]), strict=True):
        torch.testing.assert_close(found.double(), right, rtol=1e-4, atol=1e-4)


def test_many_gradients_at_once_are_each_alone() -> None:
    leaves = [t.detach().requires_grad_() for t in drawn(1, 9, 2, 3, 1, 2)]
    y, _ = ssd(*leaves)
    many = torch.randn(4, *y.shape)
    found = torch.autograd.grad(y, leaves[:5], many, is_grads_batched=True, retain_graph=True)
    for i, given in enumerate(many):
        for one, all_of in zip(torch.autograd.grad(y, leaves[:5], given, retain_graph=True), found, strict=True):
            torch.testing.assert_close(all_of[i], one, rtol=1e-4, atol=1e-4)


def test_what_others_follow_or_is_of_another_kind_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = drawn(1, 9, 2, 3, 1, 2)
    taken: list[bool] = []

    def asked(x: Tensor) -> Tensor:
        taken.append(ssd_kernels_take(x, *inputs[1:]))
        return x.sum()

    asked(inputs[0])
    assert taken.pop()
    asked(inputs[0][:, :0])
    asked(inputs[0].double())
    with FlopCounterMode(display=False):
        asked(inputs[0])
    with torch.autocast("cpu"):
        asked(inputs[0])
    with forward_ad.dual_level():
        asked(forward_ad.make_dual(inputs[0], inputs[0]))
    torch.func.vmap(asked)(inputs[0][None])
    torch.func.grad(asked)(inputs[0])
    torch.jit.trace(asked, inputs[0], check_trace=False)
    monkeypatch.setattr(ssd_cpu, "WORTH_A_CALL", 1 << 18)
    asked(inputs[0])
    monkeypatch.setattr(ssd_cpu, "WORTH_A_CALL", 1)
    monkeypatch.setattr(compiled_call, "library", lambda: None)
    asked(inputs[0])
    assert taken == [False] * 10


def test_the_mixer_takes_it_and_gives_what_the_equations_give(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    mixer, x, calls = SsdConfig(8, 4, 4, n_groups=2).build(), torch.randn(2, 40, 8), []
    forward = ssd_cpu._forward
    monkeypatch.setattr(ssd_cpu, "_forward", lambda inputs: calls.append(1) or forward(inputs))

    def gradients() -> list[Tensor]:
        y, state = mixer(x, mixer.init_state(2))
        return [y, state.memory, *torch.autograd.grad(y.square().sum(), list(mixer.parameters()))]

    with record(mixer) as seen:
        found = gradients()
    assert calls == [1]
    assert all(seen.values())
    monkeypatch.setattr(compiled_call, "library", lambda: None)
    for one, other in zip(found, gradients(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert calls == [1]
