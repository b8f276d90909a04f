"""The causal convolution with SiLU on a CPU by compiled C (convolution.c): one pass forward and two back.

Nothing but the inputs is kept. The readable form is in convolution.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.kernels.compiled import library
from regard.kernels.compiled_call import addresses, are_plain, counts, is_made_for_others, loaded, with_rows

WORTH_A_CALL = 1 << 16  # numbers from which on a library is made
BLOCK = 64  # as in convolution.c


def takes(x: Tensor, *others: Tensor) -> bool:
    """Whether x (B, T, E) and what goes with it are many plain numbers of float32 on a CPU."""
    if is_made_for_others():
        return False  # before sizes are looked at: what is made would be so for these alone
    return x.is_cpu and x.numel() >= WORTH_A_CALL and are_plain(x, *others) and library() is not None


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
    sums = x.new_empty(batch * -(-length // BLOCK), weight.shape[1] + 1, width)
    d_x, d_recent = x.new_empty(x.shape), x.new_empty(recent.shape)
    sizes, found = _sizes(given, d_y), loaded()
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
