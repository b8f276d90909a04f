"""The kernels of the selective scan and of the short convolution against their equations in float64.

On a CUDA device, or anywhere in Triton's interpreter with TRITON_INTERPRET=1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from interpreted import device_of_kernels
from regard.kernels.convolution import causal_convolution_readable
from regard.kernels.selective_scan import gated_selective_scan, selective_scan_readable


def drawn(batch: int, length: int, width: int, states: int) -> list[Tensor]:
    """u, dt, a, b, c, h, skip, and z that is half of a wider tensor."""
    torch.manual_seed(length)
    shapes = [(batch, length, width)] * 2 + [(width, states)] + [(batch, length, states)] * 2 + [(batch, width, states)]
    u, dt, a, b, c, h = (torch.randn(shape) for shape in shapes)
    z = torch.randn(batch, length, 2 * width).chunk(2, -1)[1]
    return [u, dt, -a.abs(), b, c, h, torch.randn(width), z]


def plain(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    """The scan alone, as the kernels do it; the readable form where it is asked for in float64."""
    if inputs[0].dtype == torch.float64:
        return selective_scan_readable(*inputs)
    return torch.ops.regard.selective_scan(*inputs, None, None)[:2]


def gated(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    if inputs[0].dtype != torch.float64:
        return gated_selective_scan(*inputs)
    u, dt, *rest, skip, z = inputs
    y, last = selective_scan_readable(u, F.softplus(dt), *rest)
    return (y + skip * u) * F.silu(z), last


def convolved(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    if inputs[0].dtype == torch.float64:
        return causal_convolution_readable(*inputs), inputs[0]
    return torch.ops.regard.convolution(*inputs), inputs[0]


def compare(function: Callable[..., tuple[Tensor, Tensor]], inputs: Sequence[Tensor], tolerance: float) -> None:
    """Outputs, state and all gradients, in the types given, beside float64."""
    device = device_of_kernels()
    found = []
    for wide in (False, True):
        leaves = [t.to(device).to(torch.float64 if wide else t.dtype).requires_grad_() for t in inputs]
        y, last = function(*leaves)
        loss = y.double().sin().sum() + (last.double() ** 2).sum() / 2
        found.append([y, last, *torch.autograd.grad(loss, leaves)])
    for place, (fast, right) in enumerate(zip(*found, strict=True)):
        if right.numel():
            error = float(((fast.double() - right).norm() / right.norm()).detach())
            assert error < tolerance, f"result {place} is off by {error:.1e}"


@pytest.mark.parametrize("length", [1, 3, 127, 128, 129])
@pytest.mark.parametrize("function", [plain, gated])
def test_the_scan_of_any_length_from_any_state(function: Callable[..., tuple[Tensor, Tensor]], length: int) -> None:
    inputs = drawn(1, length, 5, 4)
    if function is plain:
        inputs = [t.abs() if place == 1 else t for place, t in enumerate(inputs[:6])]
    compare(function, inputs, 5e-6)


@pytest.mark.parametrize("states", [1, 5, 16, 64])
def test_any_number_of_states(states: int) -> None:
    compare(gated, drawn(2, 6, 40, states), 1e-5)


@pytest.mark.parametrize("raw", [-30.0, -9.0, 9.0, 30.0])
def test_very_short_and_very_long_steps_keep_their_precision(raw: float) -> None:
    inputs = drawn(1, 6, 5, 4)
    inputs[1] = inputs[1] / 10 + raw
    # exp(dt A) of an exponent of 60 is exact to 60 roundings.
    compare(gated, inputs, 1e-5)


def test_a_step_of_minus_infinity_changes_nothing() -> None:
    device = device_of_kernels()
    inputs = [t.to(device) for t in drawn(1, 9, 5, 4)]
    padded = [t.clone() for t in inputs]
    padded[1][:, 6:] = float("-inf")
    _, last = gated_selective_scan(*padded)
    shorter = [t[:, :6] if place in (0, 1, 3, 4, 7) else t for place, t in enumerate(inputs)]
    assert (last - gated_selective_scan(*shorter)[1]).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("length", "width", "window"), [(1, 7, 4), (5, 7, 4), (40, 130, 4), (3, 5, 1), (2, 4, 3), (65, 5, 4)]
)
def test_the_convolution(length: int, width: int, window: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, length, 2 * width).chunk(2, -1)[0]
    shapes = ((2, window - 1, width), (width, window), (width,))
    compare(convolved, [x, *(torch.randn(shape) for shape in shapes)], 2e-6)


def test_runs_of_the_convolution_see_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    device_of_kernels()
    from regard.kernels import convolution_triton

    monkeypatch.setattr(convolution_triton, "LAUNCH", convolution_triton.Launch(run=4, block=16, ahead=2))
    torch.manual_seed(0)
    for length, window in ((8, 4), (11, 4), (13, 6), (9, 1)):
        shapes = ((2, length, 20), (2, window - 1, 20), (20, window), (20,))
        compare(convolved, [torch.randn(shape) for shape in shapes], 2e-6)


@pytest.mark.parametrize("name", ["selective_scan", "convolution"])
def test_the_operators_keep_the_rules_of_torch(name: str) -> None:
    device = device_of_kernels()
    inputs = drawn(1, 6, 5, 4)
    if name == "convolution":
        inputs = [inputs[0], torch.randn(1, 3, 5), torch.randn(5, 4), torch.randn(5)]
    torch.library.opcheck(getattr(torch.ops.regard, name), [t.to(device).requires_grad_() for t in inputs])


@pytest.mark.gpu
def test_half_precision_and_many_chunks_on_cuda() -> None:
    inputs = drawn(2, 300, 200, 16)
    narrow = [t.bfloat16() if place in (0, 1, 3, 4, 7) else t for place, t in enumerate(inputs)]
    compare(gated, narrow, 4e-2)
    compare(gated, inputs, 3e-5)
