"""One token of a recurrence, of state spaces and of the LSTM, each as one Triton kernel; imported on first use only.

The readable forms are in kernels/convolution.py, kernels/selective_scan.py, mixers/ssd.py and mixers/lstm.py, and so
is the glossary. A state is written where `after` says, which may be where it was; in rows that are not alive it stays
what it was.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from regard.kernels.choice import launches_early
from regard.kernels.selective_scan_triton import softplus

CHANNELS = 256  # of a program of the convolution
STATES = 256  # that a program of a recurrence holds: few, so that a single row has programs for many processors


@triton.jit
def _goes_on(alive, row, HAS_ALIVE: tl.constexpr):
    found = tl.full((), 1, tl.int1)
    if HAS_ALIVE:
        found = tl.load(alive + row).to(tl.int1)
    return found


@triton.jit
def _convolution(
    x, recent, weight, bias, alive, y, after, x_row, width,
    WINDOW: tl.constexpr, HAS_ALIVE: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    e = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = e < width
    goes_on = _goes_on(alive, row, HAS_ALIVE)
    new = tl.load(x + row * x_row + e, mask=real, other=0.0)
    total = tl.load(bias + e, mask=real, other=0.0).to(tl.float32)
    total += new.to(tl.float32) * tl.load(weight + e * WINDOW + WINDOW - 1, mask=real, other=0.0).to(tl.float32)
    begin = row * (WINDOW - 1) * width + e
    for i in tl.static_range(WINDOW - 1):
        # From the latest to the oldest: each makes room for the one after it.
        place = begin + (WINDOW - 2 - i) * width
        old = tl.load(recent + place, mask=real, other=0.0)
        w = tl.load(weight + e * WINDOW + (WINDOW - 2 - i), mask=real, other=0.0)
        total += old.to(tl.float32) * w.to(tl.float32)
        tl.store(after + place, tl.where(goes_on, new, old), mask=real)
        new = old
    tl.store(y + row * width + e, (total * tl.sigmoid(total)).to(y.dtype.element_ty), mask=real)


def convolution_step(
    x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor, alive: Tensor | None
) -> tuple[Tensor, Tensor]:
    """silu(conv) (B, E) of x (B, E) after recent (B, W - 1, E), and the next `recent`: itself if `alive` is given."""
    rows, width = x.shape
    y, after = x.new_empty(rows, width), recent if alive is not None else torch.empty_like(recent)
    early = launches_early(y.device)
    _convolution[(rows, triton.cdiv(width, CHANNELS))](
        x, recent, weight, bias, y if alive is None else alive, y, after, x.stride(0), width,
        WINDOW=weight.shape[1], HAS_ALIVE=alive is not None, BLOCK=CHANNELS, num_warps=4,
        EARLY=early, launch_pdl=early,
    )  # fmt: skip
    return y, after


@triton.jit
def _selective(
    u, raw, log_decay, b, c, h, skip, z, alive, y, after, raw_row, b_row, c_row, z_row, width,
    N: tl.constexpr, N_PAD: tl.constexpr, HAS_ALIVE: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    e, n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, N_PAD)
    real_e, real_n = e < width, n < N
    real = real_e[:, None] & real_n[None, :]
    goes_on = _goes_on(alive, row, HAS_ALIVE)
    dt = softplus(tl.load(raw + row * raw_row + e, mask=real_e, other=0.0).to(tl.float32))
    x = tl.load(u + row * width + e, mask=real_e, other=0.0).to(tl.float32)
    gate = tl.load(z + row * z_row + e, mask=real_e, other=0.0).to(tl.float32)
    decay = -tl.exp(tl.load(log_decay + e[:, None] * N + n[None, :], mask=real, other=0.0).to(tl.float32))
    write = tl.load(b + row * b_row + n, mask=real_n, other=0.0).to(tl.float32)
    read = tl.load(c + row * c_row + n, mask=real_n, other=0.0).to(tl.float32)
    place = (row * width + e)[:, None] * N + n[None, :]
    before = tl.load(h + place, mask=real, other=0.0)
    state = tl.exp(dt[:, None] * decay) * before + (dt * x)[:, None] * write[None, :]
    tl.store(after + place, tl.where(goes_on, state, before), mask=real)
    found = tl.sum(state * read[None, :], 1) + tl.load(skip + e, mask=real_e, other=0.0).to(tl.float32) * x
    tl.store(y + row * width + e, (found * gate * tl.sigmoid(gate)).to(y.dtype.element_ty), mask=real_e)


def gated_selective_step(
    u: Tensor, raw: Tensor, log_decay: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor,
    alive: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(y + D u) silu(z) (B, E) with the step softplus(raw) and A = -exp(log_decay), and the state after it."""
    rows, width, n = h.shape
    y, after = u.new_empty(rows, width), h if alive is not None else torch.empty_like(h)
    n_pad = triton.next_power_of_2(n)
    block = max(1, STATES // n_pad)
    early = launches_early(y.device)
    _selective[(rows, triton.cdiv(width, block))](
        u.contiguous(), raw, log_decay, b, c, h, skip, z, y if alive is None else alive, y, after,
        raw.stride(0), b.stride(0), c.stride(0), z.stride(0), width,
        N=n, N_PAD=n_pad, HAS_ALIVE=alive is not None, BLOCK=block, num_warps=2,
        EARLY=early, launch_pdl=early,
    )  # fmt: skip
    return y, after


@triton.jit
def _ssd(
    x, raw, step_bias, log_decay, b, c, h, skip, z, alive, y, after, x_row, raw_row, b_row, c_row, z_row, heads, share,
    P: tl.constexpr, N: tl.constexpr, N_PAD: tl.constexpr, HAS_ALIVE: tl.constexpr, BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    p, n = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, N_PAD)
    real_p, real_n = p < P, n < N
    real = real_p[:, None] & real_n[None, :]
    goes_on = _goes_on(alive, row, HAS_ALIVE)
    dt = tl.load(raw + row * raw_row + head).to(tl.float32) + tl.load(step_bias + head).to(tl.float32)
    dt = softplus(dt)
    decay = tl.exp(-dt * tl.exp(tl.load(log_decay + head).to(tl.float32)))
    at, group = head * P + p, head // share
    value = tl.load(x + row * x_row + at, mask=real_p, other=0.0).to(tl.float32)
    gate = tl.load(z + row * z_row + at, mask=real_p, other=0.0).to(tl.float32)
    write = tl.load(b + row * b_row + group * N + n, mask=real_n, other=0.0).to(tl.float32)
    read = tl.load(c + row * c_row + group * N + n, mask=real_n, other=0.0).to(tl.float32)
    place = (row * heads * P + at)[:, None] * N + n[None, :]
    before = tl.load(h + place, mask=real, other=0.0)
    state = decay * before + (dt * value)[:, None] * write[None, :]
    tl.store(after + place, tl.where(goes_on, state, before), mask=real)
    found = tl.sum(state * read[None, :], 1) + tl.load(skip + head).to(tl.float32) * value
    tl.store(y + row * heads * P + at, (found * gate * tl.sigmoid(gate)).to(y.dtype.element_ty), mask=real_p)


def gated_ssd_step(
    x: Tensor, raw: Tensor, step_bias: Tensor, log_decay: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor,
    z: Tensor, alive: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(y + D x) silu(z) (B, H P), with the step softplus(raw + step_bias), and the state after it.

    x and z (B, H P), raw (B, H), b and c (B, G N), h (B, H, P, N).
    """
    rows, heads, p, n = h.shape
    y, after = x.new_empty(rows, heads * p), h if alive is not None else torch.empty_like(h)
    n_pad = triton.next_power_of_2(n)
    block = min(triton.next_power_of_2(p), max(1, 2 * STATES // n_pad))
    early = launches_early(y.device)
    _ssd[(rows, heads, triton.cdiv(p, block))](
        x, raw, step_bias, log_decay, b, c, h, skip, z, y if alive is None else alive, y, after,
        x.stride(0), raw.stride(0), b.stride(0), c.stride(0), z.stride(0), heads, heads * n // b.shape[1],
        P=p, N=n, N_PAD=n_pad, HAS_ALIVE=alive is not None, BLOCK=block, num_warps=2,
        EARLY=early, launch_pdl=early,
    )  # fmt: skip
    return y, after


@triton.jit
def _lstm(
    gates, hidden, cell, alive, y, after_hidden, after_cell, width,
    HAS_ALIVE: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    e = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real, at = e < width, row * width + e
    goes_on = _goes_on(alive, row, HAS_ALIVE)
    begin = gates + row * 4 * width + e
    i = tl.sigmoid(tl.load(begin, mask=real, other=0.0).to(tl.float32))
    f = tl.sigmoid(tl.load(begin + width, mask=real, other=0.0).to(tl.float32))
    g = 2.0 * tl.sigmoid(2.0 * tl.load(begin + 2 * width, mask=real, other=0.0).to(tl.float32)) - 1.0
    o = tl.sigmoid(tl.load(begin + 3 * width, mask=real, other=0.0).to(tl.float32))
    before = tl.load(cell + at, mask=real, other=0.0)
    c = f * before.to(tl.float32) + i * g
    h = (o * (2.0 * tl.sigmoid(2.0 * c) - 1.0)).to(y.dtype.element_ty)
    tl.store(y + at, h, mask=real)
    tl.store(after_cell + at, tl.where(goes_on, c.to(before.dtype), before), mask=real)
    tl.store(after_hidden + at, tl.where(goes_on, h, tl.load(hidden + at, mask=real, other=0.0)), mask=real)


def lstm_step(gates: Tensor, hidden: Tensor, cell: Tensor, alive: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """h (B, D) of gates i, f, g, o (B, 4 D) before their activations, and the next hidden state and cell, (B, D)."""
    rows, width = cell.shape
    y = gates.new_empty(rows, width)
    after = (hidden, cell) if alive is not None else (torch.empty_like(hidden), torch.empty_like(cell))
    early = launches_early(y.device)
    _lstm[(rows, triton.cdiv(width, CHANNELS))](
        gates, hidden, cell, y if alive is None else alive, y, *after, width,
        HAS_ALIVE=alive is not None, BLOCK=CHANNELS, num_warps=4,
        EARLY=early, launch_pdl=early,
    )  # fmt: skip
    return y, *after
