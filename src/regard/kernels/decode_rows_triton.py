"""y = g(x W^T + b) + r of some dozens of rows x, as one Triton kernel on tensor cores; imported on first use only.

With so many rows the products are still fewer than the reads of W. A program takes some rows of W and all of x, or 64
rows of it; where W has too few rows to keep every processor busy and long ones, each is split into parts: a program
leaves the sums of its part in memory, and whoever comes last adds them up, always in the same order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels import choice
from regard.kernels.decode_linear_triton import activated

WARPS, STAGES = 4, 4
LEAST = 16  # the smallest side of a product on tensor cores
M_BLOCK = 64  # rows of x, at most
N_BLOCK, K_BLOCK = 32, 128
LONG = 2048  # numbers of a row of W from which on splitting it repays the sum at the end


@triton.jit
def _rows_linear(
    x, weight, bias, residual, y, sums, arrived, n, x_row, rows,
    K: tl.constexpr, M_BLOCK: tl.constexpr, N_BLOCK: tl.constexpr, K_BLOCK: tl.constexpr, PARTS: tl.constexpr,
    HAS_BIAS: tl.constexpr, HAS_RESIDUAL: tl.constexpr, ACTIVATION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    part, block = tl.program_id(1), tl.program_id(2)
    row = tl.program_id(0) * N_BLOCK + tl.arange(0, N_BLOCK)
    m = block * M_BLOCK + tl.arange(0, M_BLOCK)
    k = tl.arange(0, K_BLOCK)
    place = m.to(tl.int64)[:, None] * n + row[None, :]
    there = (m < rows)[:, None] & (row < n)[None, :]
    # What is needed last is asked for first: each wait for memory is as long as a good part of the kernel.
    if HAS_BIAS:
        biases = tl.load(bias + row, mask=row < n, other=0.0).to(tl.float32)
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    if HAS_RESIDUAL:
        beside = tl.load(residual + place, mask=there, other=0.0).to(tl.float32)
    of_part: tl.constexpr = (K + PARTS * K_BLOCK - 1) // (PARTS * K_BLOCK) * K_BLOCK
    k += part * of_part
    w_begin = weight + row.to(tl.int64)[:, None] * K + k[None, :]
    x_begin = x + m.to(tl.int64)[:, None] * x_row + k[None, :]
    found = tl.zeros((M_BLOCK, N_BLOCK), tl.float32)
    for start in range(0, of_part, K_BLOCK):
        inside = (start + k < K)[None, :]
        w = tl.load(w_begin + start, mask=(row < n)[:, None] & inside, other=0.0)
        inputs = tl.load(x_begin + start, mask=(m < rows)[:, None] & inside, other=0.0)
        found = tl.dot(inputs, tl.trans(w), found)
    is_last = True
    if PARTS > 1:
        tl.store(sums + part * rows * n + place, found, mask=there)
        tl.debug_barrier()
        before = tl.atomic_add(arrived + block * tl.num_programs(0) + tl.program_id(0), 1, sem="acq_rel")
        is_last = before == PARTS - 1
        if is_last:
            found = tl.zeros((M_BLOCK, N_BLOCK), tl.float32)
            for i in tl.static_range(PARTS):
                found += tl.load(sums + i * rows * n + place, mask=there, other=0.0, volatile=True)
    if is_last:
        if HAS_BIAS:
            found += biases[None, :]
        found = activated(found, ACTIVATION)
        if HAS_RESIDUAL:
            found += beside
        tl.store(y + place, found.to(y.dtype.element_ty), mask=there)


def rows_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None, residual: Tensor | None
) -> Tensor:
    """x (..., K), W (N, K), residual (..., N) or None; of 16 bits a number."""
    n, width = weight.shape
    rows = x.reshape(-1, width)
    rows = rows if rows.stride(-1) == 1 else rows.contiguous()
    y = x.new_empty(*x.shape[:-1], n)
    n_block, parts = _blocks(n, width, x.device)
    m_block = min(M_BLOCK, max(LEAST, triton.next_power_of_2(len(rows))))
    grid = (triton.cdiv(n, n_block), parts, triton.cdiv(len(rows), m_block))
    sums = arrived = y
    if parts > 1:
        sums = x.new_empty(parts, len(rows), n, dtype=torch.float32)
        arrived = x.new_zeros(grid[0] * grid[2], dtype=torch.int32)
    early = choice.launches_early(x.device)
    _rows_linear[grid](
        rows, weight, y if bias is None else bias, y if residual is None else residual.contiguous(), y, sums, arrived,
        n, rows.stride(0), len(rows),
        K=width, M_BLOCK=m_block, N_BLOCK=n_block, K_BLOCK=K_BLOCK, PARTS=parts, HAS_BIAS=bias is not None,
        HAS_RESIDUAL=residual is not None, ACTIVATION=activation or "none", EARLY=early,
        num_warps=WARPS, num_stages=STAGES, launch_pdl=early,
    )  # fmt: skip
    return y


def _blocks(n: int, k: int, device: torch.device) -> tuple[int, int]:
    """Rows of W that a program takes, and into how many parts these are split."""
    processors = choice.processors(device)
    programs = triton.cdiv(n, N_BLOCK)
    if 3 * programs >= processors and (k < LONG or 2 * programs > processors):
        return N_BLOCK, 1
    if k < LONG:
        return LEAST, 1
    return N_BLOCK, 1 << (max(1, processors // programs).bit_length() - 1)
