"""Mamba's selective scan with its steps, skip and gate on a CPU by compiled C (scan.c), in float32.

    s = softplus(raw)    h_t = exp(s_t A) h_(t-1) + s_t u_t B_t    y_t = (C_t h_t + D u_t) silu(z_t)

torch's operations take every number of every state through memory several times, a dozen times on the way back. Here a
few channels stay in the cache for a whole text, and what is kept for the way back is what came in and the states at
every 32nd token. Gradients of gradients are those of the readable form, and results do not depend on the number of
threads. Letters are those of kernels/selective_scan.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels.compiled_call import (
    Shape,
    addresses,
    are_plain,
    are_taken,
    counts,
    followed_gradients,
    loaded,
    with_rows,
)

MOST = 64  # states of a channel that there is room for in scan.c, as there
WORTH_A_CALL = 1 << 17  # states that are made, of one text, from which on a library is made
Inputs = Sequence[Tensor]


def takes(*inputs: Tensor) -> bool:
    """Whether what `scan` is given are plain numbers of float32 on a CPU, many and of sizes that fit."""
    return are_taken(inputs, _shapes)


def _shapes(u: Tensor, _raw: Tensor, a: Tensor, *_others: Tensor) -> list[Shape] | None:
    """Of u, raw and z (B, T, E), A (E, N), b and c (B, T, N), h (B, E, N) and D (E,)."""
    if u.dim() != 3 or a.dim() != 2 or a.shape[1] > MOST:
        return None
    (batch, length, width), states = u.shape, a.shape[1]
    if u.numel() == 0 or u.numel() * states < WORTH_A_CALL * batch:
        return None
    maps = (batch, length, states)
    return [u.shape, u.shape, (width, states), maps, maps, (batch, width, states), (width,), u.shape]


def scan(
    u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor
) -> tuple[Tensor, Tensor]:
    """What `gated_selective_scan` of selective_scan.py says, of what this file takes."""
    inputs = (u, raw, a, b, c, h, skip, z)
    if torch.is_grad_enabled() and any(part.requires_grad for part in inputs):
        return _Scan.apply(*inputs)  # pyright: ignore[reportReturnType]
    return _forward(inputs, None)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        u, h = inputs[0], inputs[5]
        borders = u.new_empty(len(u), loaded().scan_pieces(u.shape[1]), h.shape[2], h.shape[1])
        ctx.save_for_backward(*inputs, borders)
        return _forward(inputs, borders)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, borders = ctx.saved_tensors
        # Of gradients that are followed themselves, or are many at once, the readable form knows more.
        if torch.is_grad_enabled() or not are_plain(*gradients, *inputs):
            return followed_gradients(_readable, inputs, gradients)
        return _backward(inputs, borders, *gradients)


def _forward(inputs: Inputs, borders: Tensor | None) -> tuple[Tensor, Tensor]:
    rows, a, h, skip = _laid(inputs)
    y, last = rows[0].new_empty(rows[0].shape), torch.empty_like(h)
    given, kept = [y, *rows], None if borders is None else borders.data_ptr()
    places = (a.data_ptr(), skip.data_ptr(), h.data_ptr(), last.data_ptr(), kept)
    loaded().scan(addresses(given), *places, _sizes(given, len(a)))
    return y, last.transpose(1, 2)


def _backward(inputs: Inputs, borders: Tensor, d_y: Tensor, d_h: Tensor) -> tuple[Tensor, ...]:
    rows, a, h, skip = _laid(inputs)
    (batch, length, width), states = rows[0].shape, len(a)
    # In C it becomes the gradient of the first state.
    d_h = d_h.transpose(1, 2).clone(memory_format=torch.contiguous_format)
    d_u, d_raw, d_z = (h.new_empty(batch, length, width) for _ in range(3))
    found = loaded()
    d_b, d_c = (h.new_empty(batch, found.scan_groups(width), length, states) for _ in range(2))
    d_a, d_skip = torch.empty_like(h), h.new_empty(batch, width)
    given = [with_rows(d_y), *rows, d_u, d_raw, d_z]
    places = [part.data_ptr() for part in (a, skip, borders, d_h, d_a, d_skip)]
    sizes = _sizes(given, states)
    room = h.new_empty(found.scan_room(sizes))
    found.scan_gradients(addresses([*given, d_b, d_c]), *places, sizes, room.data_ptr())
    return d_u, d_raw, d_a.sum(0).t(), d_b.sum(1), d_c.sum(1), d_h.transpose(1, 2), d_skip.sum(0), d_z


def _laid(inputs: Inputs) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
    """u, raw, z, b and c where they lie, if their numbers lie side by side; A as (N, E), h as (B, N, E), D."""
    u, raw, a, b, c, h, skip, z = inputs
    rows = [with_rows(part) for part in (u, raw, z, b, c)]
    return rows, a.t().contiguous(), h.transpose(1, 2).contiguous(), skip.contiguous()


def _sizes(given: Sequence[Tensor], states: int):
    """`sizes` of scan.c."""
    threads = torch.get_num_threads()
    return counts(*given[0].shape, states, threads, *(step for part in given for step in part.stride()[:2]))


def _readable(
    u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor
) -> tuple[Tensor, Tensor]:
    from regard.kernels.selective_scan import selective_scan_readable

    y, h = selective_scan_readable(u, F.softplus(raw), a, b, c, h)
    return (y + skip * u) * F.silu(z), h
