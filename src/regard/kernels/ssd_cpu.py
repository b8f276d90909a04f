"""SSD on a CPU by compiled C (ssd.c): chunks of tokens as products of small matrices that stay in the cache.

Nothing but the inputs is kept for the gradients; the states between chunks are made again, of one head at a time. The
readable form (ssd_readable.py) passes many times through memory and keeps what every pass makes. Gradients of gradients
are those of the readable form. Results do not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
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
from regard.kernels.ssd_readable import ssd_chunked

# Products of an input and a state, of one text, from which on a library is made: it is faster for any.
WORTH_A_CALL = 1 << 15
UNITS = 16  # that threads share in the backward pass, as far as there are heads
MOST_SUMS = 1 << 26  # numbers that their sums may take, as far as one for all heads takes fewer
CHUNK = 64  # of the readable form
Inputs = Sequence[Tensor]


def takes(*inputs: Tensor) -> bool:
    """Whether what `ssd` is given are plain numbers of float32 on a CPU, many and of sizes that fit."""
    return are_taken(inputs, _shapes)


def _shapes(x: Tensor, _dt: Tensor, _decay: Tensor, b: Tensor, *_others: Tensor) -> list[Shape] | None:
    """Of x (B, T, H, P), dt and decay (B, T, H), b and c (B, T, G, N), skip (H,), h (B, H, P, N)."""
    if x.dim() != 4 or b.dim() != 4 or b.shape[2] == 0:
        return None
    (batch, length, heads, width), (groups, states) = x.shape, b.shape[2:]
    if x.numel() == 0 or x.numel() * states < WORTH_A_CALL * batch or heads % groups:
        return None
    steps, maps = (batch, length, heads), (batch, length, groups, states)
    return [x.shape, steps, steps, maps, maps, (heads,), (batch, heads, width, states)]


def ssd(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """What `ssd` of ssd.py says, of what this file takes."""
    inputs = (x, dt, decay, b, c, skip, h)
    if torch.is_grad_enabled() and any(part.requires_grad for part in inputs):
        return _Ssd.apply(*inputs)  # pyright: ignore[reportReturnType]
    return _forward(inputs)


class _Ssd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(*inputs)
        return _forward(inputs)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        # Of gradients that are followed themselves, or are many at once, the readable form knows more.
        if torch.is_grad_enabled() or not are_plain(*gradients, *inputs):
            return followed_gradients(_readable, inputs, gradients)
        return _backward(inputs, *gradients)


def _forward(inputs: Inputs) -> tuple[Tensor, Tensor]:
    x, *_, h = inputs = _laid(inputs)
    y, last = x.new_empty(x.shape), torch.empty_like(h)
    found, sizes = loaded(), _sizes(inputs, x)
    room = x.new_empty(found.ssd_room(sizes, 0))
    found.ssd_forward(y.data_ptr(), last.data_ptr(), addresses(inputs), sizes, room.data_ptr())
    return y, last


def _backward(inputs: Inputs, d_y: Tensor, d_h: Tensor) -> tuple[Tensor, ...]:
    x, *_, h = inputs = _laid(inputs)
    d_y, d_h = with_rows(d_y), d_h.contiguous()
    gradients = [x.new_empty(part.shape) for part in inputs]
    gradients[5] = x.new_empty(h.shape[:2])  # of skip, for every row of the batch
    found, sizes = loaded(), _sizes(inputs, d_y)
    room = x.new_empty(found.ssd_room(sizes, 1))
    given = (d_y.data_ptr(), d_h.data_ptr(), addresses(inputs), sizes, room.data_ptr())
    found.ssd_backward(addresses(gradients), *given)
    gradients[5] = gradients[5].sum(0)
    return tuple(gradients)


def _laid(inputs: Inputs) -> Inputs:
    """The same numbers, in an order that is read: x, b and c may be parts of a wider tensor."""
    x, dt, decay, b, c, skip, h = inputs
    small = (part.contiguous() for part in (dt, decay))
    return (with_rows(x), *small, with_rows(b), with_rows(c), skip.contiguous(), h.contiguous())


def _sizes(inputs: Inputs, d_y: Tensor) -> ctypes.Array[ctypes.c_int64]:
    """`sizes` of ssd.c."""
    x, _, _, b, c, *_ = inputs
    (rows, length, heads, width), (groups, states) = x.shape, b.shape[2:]
    # Parts that do not depend on the number of threads: sums are made in one order.
    parts = min(heads // groups, -(-UNITS // (rows * groups)), MOST_SUMS // (2 * b.numel()))
    threads = min(torch.get_num_threads(), rows * heads)
    strides = [step for part in (x, b, c, d_y) for step in part.stride()[:3]]
    return counts(rows, length, heads, width, groups, states, max(1, parts), threads, *strides)


def _readable(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor
) -> tuple[Tensor, Tensor]:
    y, last = ssd_chunked(x * dt[..., None], decay, b, c, h, CHUNK)
    return y + skip[:, None] * x, last
