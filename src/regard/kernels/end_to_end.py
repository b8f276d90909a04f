"""Sequences of unequal length that lie end to end, (1, P, ...): attention and recurrences without padding.

    offsets  (n + 1,) where each begins, and where the last ends; on the host, where its numbers are looked at

On a GPU in half precision attention is torch's flash attention for such rows. Elsewhere it is made of a few calls with
padding: sequences whose lengths lie within a factor of two of each other share one. What is around it, the projections
and nets of each position, sees no padding either way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regard.core.context import real_tokens
from regard.kernels.choice import HALF
from regard.kernels.fused_cell import run_cell

WIDEST = 256  # of a head, in flash attention
SHORT = 16  # sequences of at most so many tokens are padded together: a call has its price, too


def varlen_takes(q: Tensor, dropout: float) -> bool:
    """Whether flash attention takes these queries (1, P, H, K) end to end."""
    width = q.shape[-1]
    return q.device.type == "cuda" and q.dtype in HALF and dropout == 0 and width % 8 == 0 and width <= WIDEST


def varlen_attention(
    q: Tensor, k: Tensor, v: Tensor, offsets: Tensor, *, causal: bool, window: int | None, scale: float
) -> Tensor:
    """sum_j a_ij v_j, (1, P, H, K), each query over the keys of its own sequence."""
    from torch.nn.attention.varlen import varlen_attn

    longest = int(offsets.diff().max())
    bounds = offsets.to(q.device, torch.int32)
    before = -1 if window is None else window - 1
    after = 0 if causal else before
    q, k, v = (part[0].contiguous() for part in (q, k, v))
    found = varlen_attn(q, k, v, bounds, bounds, longest, longest, scale=scale, window_size=(before, after))
    assert isinstance(found, Tensor)
    return found[None]


def grouped(parts: Sequence[Tensor], offsets: Tensor, call: Callable[..., Tensor]) -> Tensor:
    """What `call(*parts, lengths)` makes of rows padded on the right, (n, T, ...), put end to end again, (1, P, ...).

    It is called once for all sequences that the same power of two is just enough for, and once for all short ones.
    """
    lengths = offsets.diff()
    groups: dict[int, list[int]] = {}
    for number, length in enumerate(lengths.tolist()):
        if length:
            groups.setdefault((max(length, SHORT) - 1).bit_length(), []).append(number)
    found, places = [], []
    for numbers in groups.values():
        starts, sizes = offsets[:-1][numbers], lengths[numbers]
        place = starts[:, None] + torch.arange(int(sizes.max()), device=offsets.device)  # (n, T)
        real = real_tokens(sizes, place)
        # What padding holds is finite: a token of the row itself.
        index = torch.where(real, place, starts[:, None]).to(parts[0].device)
        y = call(*(part[0, index] for part in parts), sizes)
        places.append(place[real])
        found.append(y[real.to(y.device)])
    back = torch.cat(places).argsort().to(found[0].device)
    return torch.cat(found)[back][None]


def packed_recurrence(cell: nn.RNNBase, x: Tensor, offsets: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Hidden states (1, P, d_hidden) of torch's loop over x (1, P, D), each sequence from zeros.

    hidden: W_hh in the place of the cell's own.
    """
    if x.device.type == "cpu":
        # Its loops over full rows are up to three times as fast as that over ever fewer of them.
        return grouped([x], offsets, lambda rows, _: run_cell(cell, rows, None, hidden)[0])
    return without_padding(cell, x, offsets, hidden)


def without_padding(cell: nn.RNNBase, x: Tensor, offsets: Tensor, hidden: Tensor | None = None) -> Tensor:
    """The same by a loop over places, at each of which there are fewer sequences left: the longest come first."""
    lengths, order = offsets.diff().sort(descending=True, stable=True)
    place = offsets[:-1][order] + torch.arange(int(lengths[0]), device=offsets.device)[:, None]  # (T, n)
    real = torch.arange(len(place), device=offsets.device)[:, None] < lengths
    index = place[real]
    packed = PackedSequence(x[0, index.to(x.device)], real.sum(1).cpu())
    return run_cell(cell, packed, None, hidden)[0].data[index.argsort().to(x.device)][None]
