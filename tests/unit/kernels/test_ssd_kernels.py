"""The SSD kernels against the recurrence in float64: outputs, last state and every gradient.

On a CUDA device, or anywhere in Triton's interpreter with TRITON_INTERPRET=1.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from interpreted import device_of_kernels
from regard.kernels.ssd import ssd
from regard.kernels.ssd_readable import ssd_recurrent

NAMES = ("x", "dt", "decay", "b", "c", "skip", "h")


@pytest.fixture(autouse=True)
def exact_products():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def drawn(batch: int, length: int, heads: int, width: int, groups: int, states: int) -> list[Tensor]:
    """x that lies inside a wider tensor, dt, decay, b, c, skip and h."""
    torch.manual_seed(length)
    x = torch.randn(batch, length, heads, width + 8)[..., :width]
    maps = torch.randn(2, batch, length, groups, states)
    steps = torch.rand(batch, length, heads)
    return [x, steps, -0.3 * steps, *maps, torch.randn(heads), torch.randn(batch, heads, width, states)]


def exact(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    y, last = ssd_recurrent(x * dt[..., None], decay, b, c, h)
    return y + skip[:, None] * x, last


def results(function, inputs: list[Tensor], dtype: torch.dtype, narrow: torch.dtype) -> dict[str, Tensor]:
    """Everything that a pass forward and back gives; x, b and c in the narrow type, as far as dtype is not wider."""
    types = [narrow if name in ("x", "b", "c") and dtype != torch.float64 else dtype for name in NAMES]
    leaves = [t.to(kind, copy=True).requires_grad_() for t, kind in zip(inputs, types, strict=True)]
    y, last = function(*leaves)
    weights = torch.cos(torch.arange(y.numel(), device=y.device, dtype=torch.float64)).reshape(y.shape)
    loss = (y * weights).sum() + (last.double() ** 2).sum() / 2
    gradients = torch.autograd.grad(loss, leaves)
    found = {"y": y, "last": last, **{f"d_{name}": g for name, g in zip(NAMES, gradients, strict=True)}}
    return {name: value.detach().double() for name, value in found.items()}


def compare(inputs: list[Tensor], tolerance: float, narrow: torch.dtype = torch.float32) -> None:
    device = device_of_kernels()
    inputs = [t.to(device) for t in inputs]
    inputs = [t.to(narrow).to(t.dtype) if n in ("x", "b", "c") else t for n, t in zip(NAMES, inputs, strict=True)]
    fast = results(ssd, inputs, torch.float32, narrow)
    right = results(exact, inputs, torch.float64, narrow)
    for name, expected in right.items():
        error = (fast[name] - expected).norm() / expected.norm()
        assert error < tolerance, f"{name} is off by {error:.1e}"


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 70])
def test_any_length_from_any_state(length: int) -> None:
    compare(drawn(2, length, 2, 16, 1, 16), 2e-6)


@pytest.mark.parametrize(("heads", "groups"), [(4, 2), (3, 3), (9, 1)])
def test_heads_of_a_group_share_their_maps(heads: int, groups: int) -> None:
    compare(drawn(1, 37, heads, 16, groups, 16), 2e-6)


@pytest.mark.parametrize(("width", "states"), [(3, 5), (20, 24), (16, 40)])
def test_widths_that_are_no_powers_of_two(width: int, states: int) -> None:
    compare(drawn(1, 35, 2, width, 1, states), 2e-6)


@pytest.mark.parametrize("strength", [1e3, 1e6, 3e38])
def test_what_follows_a_strong_forget_keeps_its_precision(strength: float) -> None:
    inputs = drawn(2, 40, 2, 16, 1, 16)
    inputs[2][:, 5] = inputs[2][0, 20] = -strength
    compare(inputs, 2e-6)


def test_padding_leaves_the_state_as_it_is() -> None:
    device = device_of_kernels()
    inputs = [t.to(device) for t in drawn(1, 40, 2, 16, 1, 16)]
    padded = [t.clone() for t in inputs]
    padded[1][:, 33:], padded[2][:, 33:] = 0, 0
    _, last = ssd(*padded)
    _, alone = ssd(*(t[:, :33] for t in inputs[:5]), *inputs[5:])
    assert (last - alone).abs().max() < 1e-5


def test_the_operator_keeps_the_rules_of_torch() -> None:
    device = device_of_kernels()
    inputs = [t.to(device).requires_grad_() for t in drawn(1, 20, 2, 16, 1, 16)]
    torch.library.opcheck(torch.ops.regard.ssd, inputs)


@pytest.mark.gpu
@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(2, 300, 24, 64, 1, 128), (1, 129, 4, 32, 2, 64), (2, 65, 3, 48, 1, 16)])
def test_half_precision_on_cuda(shape: tuple[int, ...], narrow: torch.dtype) -> None:
    compare(drawn(*shape), 2e-2 if narrow == torch.bfloat16 else 4e-3, narrow)


@pytest.mark.gpu
def test_float32_at_the_size_of_the_paper_on_cuda() -> None:
    compare(drawn(2, 300, 24, 64, 1, 128), 3e-6)


@pytest.mark.gpu
def test_the_same_sum_every_time_on_cuda() -> None:
    inputs = [t.cuda() for t in drawn(2, 300, 24, 64, 1, 128)]
    first, second = (results(ssd, inputs, torch.float32, torch.bfloat16) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
