"""SSD with the skip: by Triton kernels, as one operator that autograd knows and torch.compile leaves as it is, or on a
CPU by compiled C (kernels/ssd_cpu.py).

    h_t = exp(decay_t) h_(t-1) + dt_t x_t b_t^T        y_t = h_t c_t + D x_t

The readable forms are in kernels/ssd_readable.py, the kernels in kernels/ssd_triton.py, the letters in mixers/ssd.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.kernels import ssd_cpu
from regard.kernels.operators import by_kernel, keep_inputs, kernels_take, readable_gradients, shared_memory
from regard.kernels.ssd_readable import ssd_chunked

# Tokens of a chunk; float32 takes twice the room, and its exact products many registers.
CHUNK = {torch.bfloat16: 64, torch.float16: 64, torch.float32: 32}


def ssd_kernels_take(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> bool:
    """Whether `ssd` can be called with these; else the readable forms are the way."""
    return _triton_takes(x, b, h) or ssd_cpu.takes(x, dt, decay, b, c, skip, h)


def _triton_takes(x: Tensor, b: Tensor, h: Tensor) -> bool:
    """The same of the Triton kernels, which are for more than one token."""
    if x.shape[1] == 1 or h.dtype != torch.float32 or x.numel() == 0 or not kernels_take(x):
        return False
    width, states = (1 << (max(size, 16) - 1).bit_length() for size in (x.shape[-1], b.shape[-1]))
    chunk = CHUNK[x.dtype]
    # The gradients of a chunk look at two states, both maps, the inputs and what comes from above.
    room = 2 * x.element_size() * (width * states + chunk * states + chunk * width) + 1024
    return room <= shared_memory(x.device)


def ssd(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """x (B, T, H, P), dt and decay = dt A (B, T, H), b and c (B, T, G, N), skip (H,), h (B, H, P, N) in float32.

    y in the number type of x, and the last state. Products are taken in the type of x and added up in float32.
    """
    if x.is_cpu and not kernels_take(x):  # they are, in the interpreter
        return ssd_cpu.ssd(x, dt, decay, b, c, skip, h)
    return _ssd(x, dt.float(), decay.float(), b.to(x.dtype), c.to(x.dtype), skip, h)


def _readable(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor
) -> tuple[Tensor, Tensor]:
    y, last = ssd_chunked(x * dt.to(x.dtype)[..., None], decay, b, c, h, CHUNK[x.dtype])
    return (y + skip[:, None].to(y.dtype) * x).to(x.dtype), last


@torch.library.custom_op("regard::ssd", mutates_args=())
def _ssd(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    inputs = (x, dt, decay, b, c, skip, h)

    def kernel() -> tuple[Tensor, Tensor]:
        from regard.kernels.ssd_launch import LAUNCH, ssd_forward

        return ssd_forward(*inputs, LAUNCH[x.dtype])

    return by_kernel("SSD", kernel, lambda: _readable(*inputs))


@torch.library.custom_op("regard::ssd_backward", mutates_args=())
def _ssd_backward(
    d_y: Tensor, d_h: Tensor, x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor
) -> list[Tensor]:
    inputs = (x, dt, decay, b, c, skip, h)

    def kernel() -> list[Tensor]:
        from regard.kernels.ssd_launch import LAUNCH, ssd_backward

        gradients = ssd_backward(d_y, d_h, *inputs, LAUNCH[x.dtype])
        return [gradient.to(leaf.dtype) for gradient, leaf in zip(gradients, inputs, strict=True)]

    return by_kernel("SSD", kernel, lambda: readable_gradients(_readable, inputs, [d_y, d_h]))


@_ssd.register_fake
def _(x: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), rest[-1].new_empty(rest[-1].shape)


@_ssd_backward.register_fake
def _(_d_y: Tensor, _d_h: Tensor, *inputs: Tensor) -> list[Tensor]:
    return [leaf.new_empty(leaf.shape) for leaf in inputs]


def _gradients(ctx, d_y: Tensor, d_h: Tensor) -> tuple[Tensor, ...]:
    return tuple(_ssd_backward(d_y, d_h, *ctx.saved_tensors))


_ssd.register_autograd(_gradients, setup_context=keep_inputs)
