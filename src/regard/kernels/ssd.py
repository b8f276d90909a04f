"""SSD by Triton kernels, with the skip, as one operator that autograd knows and torch.compile leaves as it is.

    h_t = exp(decay_t) h_(t-1) + dt_t x_t b_t^T        y_t = h_t c_t + D x_t

The readable forms are those of mixers/ssd.py, whose letters these are; the kernels are in kernels/ssd_triton.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.kernels.operators import keep_inputs, kernels_take, shared_memory

# Tokens of a chunk; float32 takes twice the room, and its exact products many registers.
CHUNK = {torch.bfloat16: 64, torch.float16: 64, torch.float32: 32}


def ssd_kernels_take(x: Tensor, b: Tensor, h: Tensor) -> bool:
    """Whether `ssd` can be called with these; else the readable forms are the way."""
    if h.dtype != torch.float32 or x.numel() == 0 or not kernels_take(x):
        return False
    width, states = (1 << (max(size, 16) - 1).bit_length() for size in (x.shape[-1], b.shape[-1]))
    chunk = CHUNK[x.dtype]
    # The gradients of a chunk look at two states, both maps, the inputs and what comes from above.
    room = 2 * x.element_size() * (width * states + chunk * states + chunk * width) + 1024
    return room <= shared_memory(x.device.type)


def ssd(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """x (B, T, H, P), dt and decay = dt A (B, T, H), b and c (B, T, G, N), skip (H,), h (B, H, P, N) in float32.

    y in the number type of x, and the last state. Products are taken in the type of x and added up in float32.
    """
    return _ssd(x, dt.float(), decay.float(), b.to(x.dtype), c.to(x.dtype), skip, h)


@torch.library.custom_op("regard::ssd", mutates_args=())
def _ssd(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    from regard.kernels.ssd_launch import LAUNCH, ssd_forward

    return ssd_forward(x, dt, decay, b, c, skip, h, LAUNCH[x.dtype])


@torch.library.custom_op("regard::ssd_backward", mutates_args=())
def _ssd_backward(
    d_y: Tensor, d_h: Tensor, x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor
) -> list[Tensor]:
    from regard.kernels.ssd_launch import LAUNCH, ssd_backward

    inputs = (x, dt, decay, b, c, skip, h)
    gradients = ssd_backward(d_y, d_h, *inputs, LAUNCH[x.dtype])
    return [gradient.to(leaf.dtype) for gradient, leaf in zip(gradients, inputs, strict=True)]


@_ssd.register_fake
def _(x: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), rest[-1].new_empty(rest[-1].shape)


@_ssd_backward.register_fake
def _(_d_y: Tensor, _d_h: Tensor, *inputs: Tensor) -> list[Tensor]:
    return [leaf.new_empty(leaf.shape) for leaf in inputs]


def _gradients(ctx, d_y: Tensor, d_h: Tensor) -> tuple[Tensor, ...]:
    return tuple(_ssd_backward(d_y, d_h, *ctx.saved_tensors))


_ssd.register_autograd(_gradients, setup_context=keep_inputs)
