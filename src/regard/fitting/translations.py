"""A lexicon as tensors: what the words of a source may become, asked for many texts at once.

S places of a source hold ids, -1 where there is none. V words can be written, the last of which is the end of a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.fitting.spans import places_on

LEAST = 1e-300  # below any probability


@dataclass(frozen=True, eq=False)
class Translations:
    """Words first[x] .. first[x + 1] - 1 of `words` are what x may become, `t` how likely each is.

    end  the source's own, the empty word. n_words: V.
    """

    first: Tensor
    words: Tensor
    t: Tensor
    n_words: int

    @property
    def end(self) -> int:
        return len(self.first) - 2

    @cached_property
    def keys(self) -> Tensor:
        """x V + y of every entry."""
        row = torch.arange(len(self.first) - 1, device=self.first.device).repeat_interleave(self.first.diff())
        return row * self.n_words + self.words

    def expected(self, source: Tensor, weights: Tensor) -> Tensor:
        """sum_j weights_j t(w | x_j) of every word, (B, T, V), of sources (B, S) with weights (B, T, S)."""
        row, place = (source >= 0).nonzero(as_tuple=True)
        ids = source[row, place]
        sizes = self.first[ids + 1] - self.first[ids]
        entries = places_on(self.first[ids], sizes)
        cells = row.repeat_interleave(sizes) * self.n_words + self.words[entries]
        added = weights.transpose(1, 2)[row, place].repeat_interleave(sizes, 0) * self.t[entries, None]
        found = weights.new_zeros(len(source) * self.n_words, weights.shape[1]).index_add_(0, cells, added)
        return found.unflatten(0, (len(source), self.n_words)).transpose(1, 2).contiguous()

    def of(self, words: Tensor, source: Tensor) -> Tensor:
        """t(y_i | x_j), (B, T, S), of words (B, T); 0 where there is no source."""
        x = source.clamp(min=0)[:, None].expand(-1, words.shape[1], -1)
        asked = (x * self.n_words + words[..., None]).contiguous()
        if not len(self.keys):
            return torch.zeros(asked.shape, dtype=self.t.dtype, device=source.device)
        place = torch.searchsorted(self.keys, asked).clamp(max=len(self.keys) - 1)
        met = (self.keys[place] == asked) & (source >= 0)[:, None]
        return torch.where(met, self.t[place], 0.0)

    def posterior(self, words: Tensor, source: Tensor) -> Tensor:
        """p(a_i = j), (B, T, S): where each word came from; the end from the source's own, what none says from all."""
        there = (source >= 0)[:, None]
        t = self.of(words, source)
        t = torch.where(t.sum(-1, keepdim=True) > 0, t, there.to(t))
        is_end = (words == self.n_words - 1)[..., None] & (source == self.end)[:, None]
        t = torch.where(is_end.any(-1, keepdim=True), is_end.to(t), t)
        return t / t.sum(-1, keepdim=True).clamp(min=LEAST)
