"""Level: the n-grams of one order as sorted arrays, with numbers kept as codes into tables of distinct ones.

An n-gram is its context, by the context's place among the n-grams one shorter, and its last word:

    key = context x V + word

Keys ascend, so the words after a context stand side by side, and finding an n-gram is a binary search. Few different
counts make few different probabilities: two bytes of code stand for eight of number, and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Values(nn.Module):
    """Many numbers of few different values: number i is table[codes[i]].

    counts, totals  of each entry of a table of probabilities: what was counted, and what it was divided by. Empty
                    where the numbers come from elsewhere.
    """

    codes: Tensor
    table: Tensor
    counts: Tensor
    totals: Tensor

    def __init__(
        self, codes: Tensor, table: Tensor, counts: Tensor | None = None, totals: Tensor | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("codes", codes)
        self.register_buffer("table", table)
        self.register_buffer("counts", torch.zeros(0, dtype=torch.int64) if counts is None else counts)
        self.register_buffer("totals", torch.zeros(0, dtype=torch.float64) if totals is None else totals)

    def __len__(self) -> int:
        return len(self.codes)

    def at(self, index: Tensor | slice) -> Tensor:
        """The numbers at places, float64."""
        return self.table[self.entry(index)]

    def entry(self, index: Tensor | slice) -> Tensor:
        """Which entries of the table stand at places."""
        return unsigned(self.codes[index])


class Level(nn.Module):
    """The n-grams of one order.

    keys   (n,) int64, ascending. Empty at order 1, where the n-gram is the token.
    alpha  what each n-gram adds to the probability of its last word.
    gamma  the weight of the shorter context after this n-gram, 1 when nothing was seen after it; empty at the highest
           order.
    """

    keys: Tensor

    def __init__(self, keys: Tensor, alpha: Values, gamma: Values, vocab_size: int) -> None:
        super().__init__()
        self.register_buffer("keys", keys)
        self.alpha = alpha
        self.gamma = gamma
        self.vocab_size = vocab_size

    def __len__(self) -> int:
        return len(self.alpha)

    def find(self, context: Tensor, word: Tensor) -> Tensor:
        """The places of n-grams, -1 for one that was not seen or whose context is -1."""
        if len(self.keys) == 0:
            return torch.full_like(context, -1)
        key = context * self.vocab_size + word
        place = torch.searchsorted(self.keys, key)
        place.clamp_(max=len(self.keys) - 1)
        return torch.where(self.keys[place] == key, place, -1)

    def added(self, place: Tensor) -> Tensor:
        """alpha of n-grams, 0 for one that was not seen."""
        if len(self.alpha) == 0:
            return torch.zeros(place.shape, dtype=torch.float64, device=place.device)
        return torch.where(place >= 0, self.alpha.at(place.clamp(min=0)), 0.0)

    def following(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Where the n-grams after each context begin and end."""
        bounds = torch.stack([context, context + 1]) * self.vocab_size
        first, last = torch.searchsorted(self.keys, bounds)
        return first, last

    def word(self, place: Tensor | slice) -> Tensor:
        """The last word of n-grams."""
        return self.keys[place] % self.vocab_size


def unsigned(codes: Tensor) -> Tensor:
    """What `coding.narrow` made narrow, as places."""
    return codes.long() & 0xFFFF if codes.dtype is torch.int16 else codes.long()


def empty_values() -> Values:
    return Values(torch.zeros(0, dtype=torch.uint8), torch.zeros(0, dtype=torch.float64))


def empty_level(order: int, vocab_size: int) -> Level:
    """Nothing counted. Tokens are there all the same, as contexts that pass on to no context at all."""
    nothing = torch.zeros(0, dtype=torch.int64)
    if order > 1:
        return Level(nothing, empty_values(), empty_values(), vocab_size)
    codes = torch.zeros(vocab_size, dtype=torch.uint8)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    return Level(nothing, Values(codes, zero, torch.zeros(1, dtype=torch.int64), one), Values(codes, one), vocab_size)


def level_of(tensors: Mapping[str, Tensor], vocab_size: int) -> Level:
    """The level that a `state_dict` holds."""
    alpha, gamma = (
        Values(*(tensors[f"{part}.{name}"] for name in ("codes", "table", "counts", "totals")))
        for part in ("alpha", "gamma")
    )
    return Level(tensors["keys"], alpha, gamma, vocab_size)
