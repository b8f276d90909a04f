"""Linear maps whose weights have 8 bits: how far they are from the weights, and the fast form from the definition."""

from __future__ import annotations

import math

import pytest
import torch

from kernels.triton_here import DEVICE, INTERPRETED, needs_kernel
from regard.kernels.int8 import (
    LARGEST_PAIR,
    PackedInt8,
    dequantised,
    int8_linear_packed,
    int8_linear_readable,
    multiplies_int8,
    quantised,
)

needs_whole_numbers = pytest.mark.skipif(not multiplies_int8(), reason="no exact products of 8 bits")


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, 1e30])
def test_every_weight_is_half_a_step_of_its_row_away_at_most(size: float) -> None:
    weight = size * torch.randn(20, 33) * torch.logspace(-3, 3, 20)[:, None]
    q, scale = quantised(weight)
    step = weight.abs().amax(1, keepdim=True) / 127
    assert ((dequantised(q, scale) - weight).abs() <= 0.5001 * step).all()
    assert (q.abs().amax(1) == 127).all()


def test_a_row_of_zeros_stays_one() -> None:
    q, scale = quantised(torch.zeros(2, 5))
    assert not dequantised(q, scale).any()


@needs_whole_numbers
@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("shape", "wide", "many"), [((1,), 768, 40), ((16,), 33, 129), ((2, 3), 5, 1), ((4,), 3072, 64)]
)
def test_whole_numbers_are_as_near_to_the_definition_as_is_said(
    shape: tuple[int, ...], wide: int, many: int, bias: bool
) -> None:
    q, scale = quantised(torch.randn(many, wide))
    # One number of a row is far larger than the others, as in trained transformers.
    x = torch.randn(*shape, wide)
    x[..., 0] *= 100
    b = torch.randn(many) if bias else None
    exact = int8_linear_readable(x.double(), q, scale, b)
    found = int8_linear_packed(x, PackedInt8.of(q, scale), b)
    absolute = dequantised(q, scale).double().abs()
    bound = 0.501 * x.abs().amax(-1, keepdim=True) / LARGEST_PAIR * absolute.sum(1)
    rounding = 4e-7 * (x.double().abs() @ absolute.t() + (0 if b is None else b.abs()))
    assert found.shape == exact.shape
    assert ((found - exact).abs() <= bound + rounding).all()


@needs_whole_numbers
@torch.no_grad()
def test_inputs_are_rounded_to_the_nearest_and_not_cut_off() -> None:
    """By the map that changes nothing: what comes out is the input as it was written."""
    packed, x = PackedInt8.of(*quantised(torch.eye(64))), torch.randn(32, 64)
    step = x.abs().amax(-1, keepdim=True) / LARGEST_PAIR
    assert ((int8_linear_packed(x, packed, None) - x).abs() <= 0.51 * step).all()


@needs_whole_numbers
@torch.no_grad()
def test_a_row_depends_on_no_other_row_and_what_is_no_number_stays_none() -> None:
    q, scale = quantised(torch.randn(24, 40))
    packed, x = PackedInt8.of(q, scale), torch.randn(4, 40)
    alone = int8_linear_packed(x[1:2], packed, None)
    x[0], x[2], x[3, 7] = 1e6, 0.0, math.nan
    found = int8_linear_packed(x, packed, None)
    assert torch.equal(found[1:2], alone)
    assert not found[2].any()
    assert found[3].isnan().all()
    across = torch.randn(40, 3).t()
    assert torch.equal(int8_linear_packed(across, packed, None), int8_linear_packed(across.clone(), packed, None))
    assert not int8_linear_packed(torch.full((1, 40), math.inf), packed, None).isfinite().any()


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32] if INTERPRETED else [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("rows", "wide", "many"), [(1, 768, 40), (4, 2100, 70), (2, 33, 129)])
def test_the_kernel_for_few_rows_is_the_definition(rows: int, wide: int, many: int, dtype: torch.dtype) -> None:
    from regard.kernels.decode_linear_triton import linear

    q, scale = (part.to(DEVICE) for part in quantised(torch.randn(many, wide) / wide**0.5))
    x, b, r = (torch.randn(*shape, device=DEVICE, dtype=dtype) for shape in ((rows, wide), (many,), (rows, many)))
    exact = torch.nn.functional.silu(int8_linear_readable(x.double(), q, scale, b.double())) + r.double()
    close = 2e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(linear(x, q, b, "silu", r, scale).double(), exact, rtol=close, atol=close)
