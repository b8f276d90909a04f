"""The gated RMSNorm on a CPU by compiled C (gated_norm.c): every vector is read once forward and once back.

Nothing but the inputs is kept. The readable form is in gated_norm.py.
"""

from __future__ import annotations

from collections.abc import Callable

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

WORTH_A_CALL = 1 << 16  # numbers from which on a library is made
Readable = Callable[[Tensor, Tensor, Tensor, float], Tensor]


def takes(*inputs: Tensor) -> bool:
    """Whether x (..., D), z and the weight are plain numbers of float32 on a CPU, many and of sizes that fit."""
    return are_taken(inputs, _shapes)


def _shapes(x: Tensor, *_others: Tensor) -> list[Shape] | None:
    return None if x.numel() < WORTH_A_CALL else [x.shape, x.shape, x.shape[-1:]]


def gated_norm(x: Tensor, z: Tensor, weight: Tensor, epsilon: float, readable: Readable) -> Tensor:
    """What `gated_rms_norm` of gated_norm.py says; `readable` gives gradients of gradients."""
    if torch.is_grad_enabled() and any(part.requires_grad for part in (x, z, weight)):
        return _GatedNorm.apply(x, z, weight, epsilon, readable)  # pyright: ignore[reportReturnType]
    return _forward(x, z, weight, epsilon)


class _GatedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, z: Tensor, weight: Tensor, epsilon: float, readable: Readable) -> Tensor:
        ctx.save_for_backward(x, z, weight)
        ctx.epsilon, ctx.readable = epsilon, readable
        return _forward(x, z, weight, epsilon)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, z, weight = inputs = ctx.saved_tensors
        if torch.is_grad_enabled() or not are_plain(*gradients, *inputs):
            found = followed_gradients(lambda *given: ctx.readable(*given, ctx.epsilon), inputs, gradients)
        else:
            found = _backward(gradients[0], x, z, weight, ctx.epsilon)
        return (*found, None, None)


def _forward(x: Tensor, z: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    rows, gates, weight = _rows(x), _rows(z), weight.contiguous()
    y = x.new_empty(x.shape)
    places = [part.data_ptr() for part in (y, rows, gates, weight)]
    loaded().gated_norm(*places, _sizes(rows, gates, rows), epsilon)
    return y


def _backward(d_y: Tensor, x: Tensor, z: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, ...]:
    rows, gates, weight, d_y = _rows(x), _rows(z), weight.contiguous(), _rows(d_y)
    d_x, d_z = x.new_empty(x.shape), z.new_empty(z.shape)
    found = loaded()
    sums = x.new_empty(found.gated_norm_blocks(len(rows)), x.shape[-1])
    places = [part.data_ptr() for part in (d_y, rows, gates, weight)]
    found.gated_norm_back(addresses((d_x, d_z, sums)), *places, _sizes(rows, gates, d_y), epsilon)
    return d_x, d_z, sums.sum(0)


def _rows(x: Tensor) -> Tensor:
    return with_rows(x.reshape(-1, x.shape[-1]))


def _sizes(x: Tensor, z: Tensor, d_y: Tensor):
    """`sizes` of gated_norm.c."""
    return counts(*x.shape, torch.get_num_threads(), *(part.stride(0) for part in (x, z, d_y)))
