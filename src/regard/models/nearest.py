"""Translation memory: the translations of the most similar sources of training (Nagao 1984), softly looked up.

    s_k = cos(f(x), f(x_k)),    f_g(x) = (1 + log n_g) (1 + log((1 + n) / (1 + d_g))),  g the n-grams of x

    n_g  how often n-gram g of one or two tokens occurs in the source, d_g in how many of the n sources of training

What is done with them is in regard/models/soft_lookup.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.context import real_tokens
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Tell
from regard.core.registry import register
from regard.fitting.lexicon import Texts
from regard.fitting.model import require
from regard.fitting.spans import places
from regard.fitting.sparse import SparseRows, summed
from regard.models.fitted_writer import ExamplePairs, PairData
from regard.models.seq2seq import source_vocabulary
from regard.models.soft_lookup import SoftLookup, SoftLookupConfig


@dataclass(frozen=True)
class NearestConfig(SoftLookupConfig, kind="nearest"):
    """source_vocab_size: tokens of the side that is read."""

    source_vocab_size: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.source_vocab_size > 0, f"source_vocab_size must be positive, found {self.source_vocab_size}")

    def build(self) -> Nearest:
        return Nearest(self)

    def example(self) -> ExamplePairs:
        chance = np.random.default_rng(0)
        sides = [chance.integers(size, size=36) for size in (self.source_vocab_size, self.vocab_size - 1)]
        return ExamplePairs(*(Texts(side, np.arange(10) * 4) for side in sides))


class Nearest(SoftLookup):
    """source (P,), source_starts (n + 1,): what was read in training, end to end."""

    bandwidths = (0.1, 0.025, 0.05, 0.2, 0.4)
    source: Tensor
    source_starts: Tensor

    def __init__(self, config: NearestConfig) -> None:
        super().__init__(config)
        for name in ("source", "source_starts"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        self._index: _Index | None = None

    @property
    def d_memory(self) -> int:
        return 1

    def fit(self, data: PairData, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        rows = data.rows
        parts = {"source": rows.source.values, "source_starts": rows.source.starts}
        own = {name: torch.from_numpy(np.asarray(value, np.int64)) for name, value in parts.items()}
        return self.remember(rows.target, own, settings, tell)

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The ids themselves, (B, S, 1)."""
        return source[..., None].long(), lengths

    def similarity(self, memory: Tensor, lengths: Tensor | None) -> Tensor:
        assert self._index is not None
        real = real_tokens(lengths, memory).cpu().numpy()
        asked = Texts(memory[..., 0].cpu().numpy()[real], np.concatenate([[0], np.cumsum(real.sum(1))]))
        return torch.from_numpy(self._index.cosines(asked)).to(memory.device)

    def shown(self, row: int) -> tuple[int, ...]:
        return tuple(self.source[int(self.source_starts[row]) : int(self.source_starts[row + 1])].tolist())

    def settle(self) -> None:
        super().settle()
        if self.source_starts.is_meta or not len(self.source_starts):
            return
        n, values, starts = len(self.starts) - 1, self.source.cpu().numpy(), self.source_starts.cpu().numpy()
        require(len(starts) == n + 1 and starts[0] == 0 and bool((np.diff(starts) >= 0).all()), "source_starts")
        require(int(starts[-1]) == len(values), "source_starts")
        inside = not len(values) or 0 <= values.min() <= values.max() < self.config.source_vocab_size
        require(inside, "source")
        self._index = _Index(Texts(values, starts), self.config.source_vocab_size)


class _Index:
    """In which texts of training each n-gram occurs, and how much it counts there."""

    def __init__(self, texts: Texts, n_words: int) -> None:
        self.n_words = n_words
        keys, row = _keys(texts, n_words)
        self.grams, column = np.unique(keys, return_inverse=True)
        each = summed(row, column, np.ones(len(row)), len(texts.starts) - 1, len(self.grams))
        self.idf = each.idf()
        self.texts = self._vectors(texts).transposed()  # of each n-gram

    def cosines(self, asked: Texts) -> np.ndarray:
        """Of texts and all those of training, (B, n)."""
        rows, texts = self._vectors(asked), self.texts
        sizes = texts.sizes[rows.columns]
        at = places(texts.starts[rows.columns], sizes)
        cells = np.repeat(rows.row_of, sizes) * texts.width + texts.columns[at]
        products = np.repeat(rows.values, sizes) * texts.values[at]
        return np.bincount(cells, products, minlength=len(rows) * texts.width).reshape(len(rows), texts.width)

    def _vectors(self, texts: Texts) -> SparseRows:
        """f of texts, each of length 1, by the n-grams that are known."""
        keys, row = _keys(texts, self.n_words)
        column = np.searchsorted(self.grams, keys)
        known = np.zeros(len(keys), bool)
        inside = column < len(self.grams)
        known[inside] = self.grams[column[inside]] == keys[inside]
        found = summed(row[known], column[known], np.ones(int(known.sum())), len(texts.starts) - 1, len(self.grams))
        return found.of_length_one((1 + np.log(found.values)) * self.idf[found.columns])


def _keys(texts: Texts, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """A number for every n-gram of one and of two tokens of texts, and its text; texts in order."""
    values = texts.values.astype(np.int64)
    row = np.repeat(np.arange(len(texts.starts) - 1), np.diff(texts.starts))
    pairs = np.flatnonzero(row[1:] == row[:-1])
    keys = np.concatenate([values, (values[pairs] + 1) * n_words + values[pairs + 1]])
    rows = np.concatenate([row, row[pairs]])
    order = np.argsort(rows, kind="stable")
    return keys[order], rows[order]


@register(
    "nearest",
    sizes={"tiny": {"neighbours": 3, "order": 2}, "small": {}, "base": {}, "paper": {"neighbours": 1}},
    paper="Nagao 1984, A framework of a mechanical translation between Japanese and English by analogy principle",
    task="pairs",
)
def nearest(
    spec: DataSpec,
    *,
    neighbours: int = 32,
    order: int = 4,
    bandwidth: float | None = None,
    back_off: float | None = None,
) -> NearestConfig:
    """Translation memory: the translations of the most similar sources, softly looked up."""
    chosen = (neighbours, order, bandwidth, back_off)
    return NearestConfig(spec.vocab_size, *chosen, source_vocabulary(spec, False))
