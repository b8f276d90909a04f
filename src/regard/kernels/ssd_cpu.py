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

from regard.kernels.choice import PLAIN
from regard.kernels.compiled import library
from regard.kernels.product import is_watched
from regard.kernels.ssd_readable import ssd_chunked

WORTH_A_CALL = 1 << 18  # products of an input and a state from which on a library is made
UNITS = 16  # that threads share in the backward pass, as far as there are heads
CHUNK = 64  # of the readable form
Inputs = Sequence[Tensor]
_SIZES = ctypes.c_int64 * 20


def takes(x: Tensor, b: Tensor, *others: Tensor) -> bool:
    """Whether x (B, T, H, P), b (B, T, G, N) and what goes with them are plain numbers of float32 on a CPU."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # pyright: ignore[reportPrivateImportUsage]
        return False  # before sizes are looked at: what is made would be so for these alone
    if x.numel() * b.shape[-1] < WORTH_A_CALL or not x.is_cpu:
        return False
    return _are_plain(x, b, *others) and library() is not None


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
        if torch.is_grad_enabled() or any(map(_is_many, gradients)) or not _are_plain(*gradients, *inputs):
            return _readable_gradients(inputs, gradients)
        return _backward(inputs, *gradients)


def _are_plain(*tensors: Tensor) -> bool:
    plain = all(x.dtype is torch.float32 and x.is_cpu and type(x) in PLAIN for x in tensors)
    return plain and not is_watched()


def _is_many(gradient: Tensor) -> bool:
    """Whether it stands for many gradients, which `torch.autograd.grad(is_grads_batched=True)` asks for at once."""
    return torch._C._functorch.is_legacy_batchedtensor(gradient)  # pyright: ignore


def _forward(inputs: Inputs) -> tuple[Tensor, Tensor]:
    x, *_, h = inputs = _laid(inputs)
    y, last = x.new_empty(x.shape), torch.empty_like(h)
    found, sizes = _library(), _sizes(inputs, x)
    room = x.new_empty(found.ssd_room(sizes, 0))
    found.ssd_forward(y.data_ptr(), last.data_ptr(), _addresses(inputs), sizes, room.data_ptr())
    return y, last


def _backward(inputs: Inputs, d_y: Tensor, d_h: Tensor) -> tuple[Tensor, ...]:
    x, *_, h = inputs = _laid(inputs)
    d_y, d_h = _with_rows(d_y), d_h.contiguous()
    gradients = [x.new_empty(part.shape) for part in inputs]
    gradients[5] = x.new_empty(h.shape[:2])  # of skip, for every row of the batch
    found, sizes = _library(), _sizes(inputs, d_y)
    room = x.new_empty(found.ssd_room(sizes, 1))
    given = (d_y.data_ptr(), d_h.data_ptr(), _addresses(inputs), sizes, room.data_ptr())
    found.ssd_backward(_addresses(gradients), *given)
    gradients[5] = gradients[5].sum(0)
    return tuple(gradients)


def _laid(inputs: Inputs) -> Inputs:
    """The same numbers, in an order that is read: x, b and c may be parts of a wider tensor."""
    x, dt, decay, b, c, skip, h = inputs
    small = (part.contiguous() for part in (dt, decay))
    return (_with_rows(x), *small, _with_rows(b), _with_rows(c), skip.contiguous(), h.contiguous())


def _with_rows(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _sizes(inputs: Inputs, d_y: Tensor) -> ctypes.Array[ctypes.c_int64]:
    """`sizes` of ssd.c."""
    x, _, _, b, c, *_ = inputs
    (rows, length, heads, width), (groups, states) = x.shape, b.shape[2:]
    # Parts that do not depend on the number of threads: sums are made in one order.
    parts = min(heads // groups, max(1, -(-UNITS // (rows * groups))))
    threads = min(torch.get_num_threads(), rows * heads)
    strides = [step for part in (x, b, c, d_y) for step in part.stride()[:3]]
    return _SIZES(rows, length, heads, width, groups, states, parts, threads, *strides)


def _addresses(tensors: Inputs) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*(part.data_ptr() for part in tensors))


def _readable(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor
) -> tuple[Tensor, Tensor]:
    y, last = ssd_chunked(x * dt[..., None], decay, b, c, h, CHUNK)
    return y + skip[:, None] * x, last


def _readable_gradients(inputs: Inputs, gradients: Inputs) -> tuple[Tensor | None, ...]:
    followed = torch.is_grad_enabled()
    with torch.enable_grad():
        leaves = [part if followed and part.requires_grad else part.detach().requires_grad_() for part in inputs]
        return torch.autograd.grad(_readable(*leaves), leaves, gradients, create_graph=followed)


def _library() -> ctypes.CDLL:
    found = library()
    assert found is not None, "SSD without a library"
    return found
