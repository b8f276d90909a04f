"""The convolution and the gated norm by compiled C are those of float64, with their gradients, for any sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from regard.kernels import compiled_call, convolution_cpu, gated_norm_cpu
from regard.kernels.compiled import library
from regard.kernels.convolution import causal_convolution
from regard.kernels.gated_norm import gated_rms_norm

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")
Form = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Any size is taken, and these are the passes that were made."""
    found: list[str] = []
    for place, names in ((convolution_cpu, ("convolve", "gradients")), (gated_norm_cpu, ("_forward", "_backward"))):
        monkeypatch.setattr(place, "WORTH_A_CALL", 1)
        for name in names:
            plain = getattr(place, name)
            monkeypatch.setattr(place, name, lambda *given, of=name, plain=plain: found.append(of) or plain(*given))
    return found


def normed(x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
    return gated_rms_norm(x, z, weight, 1e-5)


def convolved(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The equation, with torch's grouped convolution."""
    seen = torch.cat([recent, x], 1).transpose(1, 2)
    y = torch.nn.functional.conv1d(seen, weight[:, None], bias, groups=len(bias))
    return torch.nn.functional.silu(y).transpose(1, 2)


def gated(x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
    s = x * z * torch.sigmoid(z)
    return s * (s.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weight


def results(function: Form, inputs: list[Tensor]) -> list[Tensor]:
    leaves = [t.detach().requires_grad_() for t in inputs]
    y = function(*leaves)
    weights = torch.cos(torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape).to(y.dtype)
    return [y.detach(), *torch.autograd.grad((y * weights).sum(), leaves)]


def compare(function: Form, equation: Form, inputs: list[Tensor]) -> None:
    for found, right in zip(results(function, inputs), results(equation, [t.double() for t in inputs]), strict=True):
        assert (found.double() - right).norm() <= 1e-6 * right.norm()


def inside(*shape: int) -> Tensor:
    """Numbers that are a part of a wider tensor, large enough to close and open gates."""
    return 4 * torch.randn(*shape[:-1], shape[-1] + 9)[..., 3:-6]


@pytest.mark.parametrize("window", [1, 2, 4])
@pytest.mark.parametrize("shape", [(1, 1, 5), (2, 5, 7), (1, 64, 16), (3, 130, 40), (2, 66, 33)])
def test_a_convolution_of_any_size(shape: tuple[int, int, int], window: int, taken: list[str]) -> None:
    torch.manual_seed(0)
    batch, _, width = shape
    maps = torch.randn(width, window), torch.randn(width)
    compare(causal_convolution, convolved, [inside(*shape), torch.randn(batch, window - 1, width), *maps])
    assert taken == ["convolve", "gradients"]


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 16), (2, 35, 40), (1, 64, 512)])
def test_a_gated_norm_of_any_size(shape: tuple[int, ...], taken: list[str]) -> None:
    torch.manual_seed(0)
    compare(normed, gated, [inside(*shape), inside(*shape), torch.randn(shape[-1])])
    assert taken == ["_forward", "_backward"]


def test_a_weight_whose_numbers_lie_apart_is_there_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    plain, others = gated_norm_cpu.loaded, []

    def late() -> object:
        # A copy of the weight that nobody holds would be these by now.
        others.extend(torch.full((40,), torch.nan) for _ in range(9))
        return plain()

    monkeypatch.setattr(gated_norm_cpu, "loaded", late)
    compare(normed, gated, [inside(4, 70, 40), inside(4, 70, 40), torch.randn(40, 2)[:, 0]])


def cases() -> list[tuple[Form, Form, list[Tensor]]]:
    torch.manual_seed(0)
    maps = torch.randn(6, 3), torch.randn(6)
    return [
        (causal_convolution, convolved, [torch.randn(2, 70, 6), torch.randn(2, 2, 6), *maps]),
        (normed, gated, [torch.randn(2, 70, 6), torch.randn(2, 70, 6), torch.randn(6)]),
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_the_same_bits_for_any_number_of_threads(which: int) -> None:
    function, _, inputs = cases()[which]
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(results(function, inputs))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


@pytest.mark.parametrize("which", [0, 1])
def test_gradients_of_gradients_are_those_of_the_equation(which: int) -> None:
    def size(function: Form, inputs: list[Tensor]) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in inputs]
        first = torch.autograd.grad(function(*leaves).square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(torch.stack([part.square().sum() for part in first]).sum(), leaves)

    function, equation, inputs = cases()[which]
    for found, right in zip(size(function, inputs), size(equation, [t.double() for t in inputs]), strict=True):
        assert (found.double() - right).norm() <= 1e-5 * right.norm()


def test_what_others_follow_or_is_of_another_kind_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    x, found = torch.randn(2, 70, 6), []

    def asked(x: Tensor) -> Tensor:
        maps = x.new_ones(x.shape[-1], 1), x.new_ones(x.shape[-1])
        found.append((convolution_cpu.takes(x, x[:, :0], *maps), gated_norm_cpu.takes(x, x, maps[1])))
        return x.sum()

    asked(x)
    assert found.pop() == (True, True)
    asked(x.double())
    asked(x[:, :0])
    with FlopCounterMode(display=False):
        asked(x)
    with torch.autocast("cpu"):
        asked(x)
    torch.func.grad(asked)(x)
    monkeypatch.setattr(compiled_call, "library", lambda: None)
    asked(x)
    assert found == [(False, False)] * 6


@pytest.mark.parametrize("which", [0, 1])
def test_without_a_compiler_they_are_torchs(which: int, taken: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    function, equation, inputs = cases()[which]
    monkeypatch.setattr(compiled_call, "library", lambda: None)
    compare(function, equation, inputs)
    torch.jit.trace(lambda given: function(given, *inputs[1:]), inputs[0], check_trace=False)
    assert taken == []
