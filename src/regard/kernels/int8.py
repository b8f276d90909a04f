"""Linear maps whose weights have 8 bits: y = x W^T + b with W = s q, a scale for each output.

    s_n  = max_k |W_nk| / 127,   q_nk = round(W_nk / s_n)          symmetric, from -127 to 127
    y_mn = s_n sum_k x_mk q_nk + b_n                               the definition: x is not rounded

The fast form on a CPU multiplies whole numbers only, which oneDNN does at the speed of memory. Each row of x is written
as whole numbers of 16 bits, and these as two digits of 8 bits, which are two rows of one product:

    t_m  = max_k |x_mk| / 32639,   round(x_mk / t_m) = 256 h_mk + l_mk,   h, l from -128 to 127
    y_mn = t_m s_n (256 sum_k h_mk q_nk + sum_k l_mk q_nk) + b_n

Its sums are exact; x alone is rounded, by t_m / 2 at most, so that it differs from the definition by no more than
t_m / 2 sum_k |s_n q_nk| and the rounding of float32. A row's numbers depend on no other row.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LARGEST = 127
AT_ONCE = 1 << 23  # numbers of a matrix that are rounded at a time
# The largest whole number of two digits that has its negative beside it, and what makes all of them positive.
LARGEST_PAIR, SHIFT, ZERO = 127 * 256 + 127, 128 * 257, 128


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """q (N, K) in int8 and s (N,), in float32, of W (N, K); some rows at a time, so that no copy of W is made."""
    n, k = weight.shape
    q = torch.empty(n, k, dtype=torch.int8, device=weight.device)
    scale = torch.zeros(n, dtype=torch.float32, device=weight.device)
    rows = max(1, AT_ONCE // max(k, 1))
    for first in range(0, n if k else 0, rows):
        part = slice(first, first + rows)
        matrix = weight.detach()[part].float()
        scale[part] = matrix.abs().amax(1) / LARGEST
        # A row of zeros has a scale of 0.
        whole = (matrix / scale[part].clamp(min=torch.finfo(torch.float32).tiny)[:, None]).round_()
        q[part] = whole.clamp_(-LARGEST, LARGEST).to(torch.int8)
    return q, scale


def dequantised(q: Tensor, scale: Tensor) -> Tensor:
    """W (N, K) in float32."""
    return q.float() * scale[:, None]


def int8_linear_readable(x: Tensor, q: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """The definition, in the number type of x."""
    return F.linear(x, dequantised(q, scale).to(x.dtype), None if bias is None else bias.to(x.dtype))


class PackedInt8(NamedTuple):
    """q in the order in which oneDNN reads it, s, and the zeros of symmetric weights, (N,) each."""

    q: Tensor
    scale: Tensor
    zeros: Tensor

    @classmethod
    def of(cls, q: Tensor, scale: Tensor) -> PackedInt8:
        q = torch.ops.onednn.qlinear_prepack(q, [2, q.shape[1]])
        return cls(q, scale, torch.zeros(len(scale), dtype=torch.int32))


def int8_linear_packed(x: Tensor, packed: PackedInt8, bias: Tensor | None) -> Tensor:
    """The same by whole numbers, of x (..., K) on a CPU without gradients."""
    rows = x.reshape(-1, x.shape[-1]).float().contiguous()
    largest = rows.abs().amax(-1, keepdim=True) / LARGEST_PAIR  # (M, 1)
    sums = _sums(_digits(rows, largest), packed)
    y = torch.add(sums[: len(rows)], sums[len(rows) :], alpha=256)
    y = y.mul_(largest) if bias is None else torch.addcmul(bias.float(), y, largest)
    return y.view(*x.shape[:-1], y.shape[-1]).to(x.dtype)


def _digits(rows: Tensor, largest: Tensor) -> Tensor:
    """(2 M, K) low digits, then high ones, of rows (M, K), each plus ZERO."""
    # What is no number is found again in the scale, by which all is multiplied at the end.
    factor = largest.clamp(min=torch.finfo(torch.float32).tiny).reciprocal()
    whole = (rows * factor).add_(SHIFT + 0.5).to(torch.int32)
    return whole.view(torch.uint8).view(*rows.shape, 4)[..., :2].permute(2, 0, 1).reshape(-1, rows.shape[1])


def _sums(digits: Tensor, packed: PackedInt8) -> Tensor:
    """s_n sum_k (d_mk - ZERO) q_nk (M, N) in float32."""
    out = (None, 1.0, 0, torch.float32, "none", [], "")
    return torch.ops.onednn.qlinear_pointwise(digits, 1.0, ZERO, *packed, *out)


@cache
def multiplies_int8() -> bool:
    """Whether this processor's whole-number products are there and exact: older ones cut sums of pairs off."""
    try:
        digits = torch.full((2, 64), 255, dtype=torch.uint8)
        q = torch.full((32, 64), LARGEST, dtype=torch.int8)
        sums = _sums(digits, PackedInt8.of(q, torch.ones(len(q))))
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return bool((sums == (255 - ZERO) * LARGEST * 64).all())
