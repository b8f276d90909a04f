"""The causal convolution with SiLU on a CPU by compiled C (convolution.c): one pass forward and two back.

Nothing but the inputs is kept. The readable form is in convolution.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.kernels.compiled_call import Shape, addresses, are_taken, counts, loaded, with_rows

WORTH_A_CALL = 1 << 16  # numbers from which on a library is made


def takes(*inputs: Tensor) -> bool:
    """Whether what `convolve` is given, and then y's gradient, are plain numbers of float32 on a CPU, many and of sizes
    that fit."""
    return are_taken(inputs, _shapes)


def _shapes(x: Tensor, _recent: Tensor, weight: Tensor, _bias: Tensor, *d_y: Tensor) -> list[Shape] | None:
    """Of x (B, T, E), recent (B, W - 1, E), weight (E, W), bias (E,), and y's gradient where it is there."""
    if x.numel() < WORTH_A_CALL or x.dim() != 3 or weight.dim() != 2:
        return None
    (batch, _, width), window = x.shape, weight.shape[1]
    return [x.shape, (batch, window - 1, width), (width, window), (width,), *(x.shape for _ in d_y)]


def convolve(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """What `causal_convolution` of convolution.py says, without gradients."""
    given = _laid(x, recent, weight, bias)
    y = x.new_empty(x.shape)
    loaded().convolve(y.data_ptr(), *(part.data_ptr() for part in given), _sizes(given, x))
    return y


def gradients(d_y: Tensor, x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Of all inputs, of that of y."""
    d_y, given = with_rows(d_y), _laid(x, recent, weight, bias)
    batch, length, width = x.shape
    sizes, found = _sizes(given, d_y), loaded()
    sums = x.new_empty(batch * found.convolve_blocks(length), weight.shape[1] + 1, width)
    d_x, d_recent = x.new_empty(x.shape), x.new_empty(recent.shape)
    room = x.new_empty(found.convolve_room(sizes))
    places = [part.data_ptr() for part in (d_y, *given)]
    found.convolve_back(addresses((d_x, d_recent, sums)), *places, sizes, room.data_ptr())
    d_maps = sums.sum(0)
    return d_x, d_recent, d_maps[:-1].t(), d_maps[-1]


def _laid(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    return with_rows(x), recent.contiguous(), weight.t().contiguous(), bias.contiguous()


def _sizes(given: tuple[Tensor, ...], d_y: Tensor):
    """`sizes` of convolution.c."""
    x, _, weight, _ = given
    return counts(*x.shape, len(weight), torch.get_num_threads(), *x.stride()[:2], *d_y.stride()[:2])
