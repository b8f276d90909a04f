"""The regularised likelihood of a linear-chain conditional random field, as `regard.fitting.lbfgs` asks for it.

    f(w) = strength |w|^2 - sum over sentences of log p(y | x)          (Lafferty, McCallum, Pereira 2001)
    df   = 2 strength w + (how often each feature is expected with each tag) - (how often it was met with it)

w has a number for each feature and tag that were met together (or for all pairs), for each tag after each, and for
each tag at both ends of a sentence. Sums over features are lookups in tables (see word_features.py), those over ways
to tag are the chain's (chain.py). Of many words sums are in float32, for which torch has a fast way, of few in float64;
values and steps always are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.fitting.chain import by_time, sums
from regard.fitting.sparse import SparseRows
from regard.fitting.word_features import Table

FEW = 1 << 18  # numbers for all words and tags up to which sums are in float64


@dataclass(frozen=True, eq=False)
class ChainWeights:
    """unary (F, C): of each feature for each tag. between (C, C): of a tag, the row, before another.

    start, end (C,): of the first and the last tag.
    """

    unary: Tensor
    between: Tensor
    start: Tensor
    end: Tensor


def kept(tables: Sequence[Table], least: int, least_pairs: int) -> tuple[list[Table], np.ndarray]:
    """The tables with the features that so many words have, and which columns of all these are."""
    found, columns, first = list[Table](), list[np.ndarray](), 0
    for table in tables:
        often = np.bincount(table.index, minlength=len(table.rows))[table.rows.row_of]
        counts = np.bincount(table.rows.columns, often, minlength=table.rows.width)
        columns.append(counts >= (least_pairs if table.pairs else least))
        found.append(table.kept(columns[-1], first))
        first += found[-1].rows.width
    return found, np.concatenate(columns)


class _Sum:
    """Sums of chosen rows of a matrix, many at once, and the transpose of that."""

    def __init__(self, rows: SparseRows) -> None:
        self.there, self.back = (
            (torch.from_numpy(part.columns), torch.from_numpy(part.starts[:-1].copy()))
            for part in (rows, rows.transposed())
        )

    def __call__(self, matrix: Tensor) -> Tensor:
        return F.embedding_bag(self.there[0], matrix, self.there[1], mode="sum")

    def transposed(self, matrix: Tensor) -> Tensor:
        return F.embedding_bag(self.back[0], matrix, self.back[1], mode="sum")


class Likelihood:
    """f and its gradient.

    tags  (N,): of all words, sentences end to end. sizes: how long each sentence is.
    seen  only pairs of a feature and a tag that were met together have a weight.
    """

    def __init__(
        self, tables: Sequence[Table], tags: np.ndarray, sizes: np.ndarray, n_tags: int, strength: float, seen: bool
    ) -> None:
        self.order, self.n_tags, self.strength = by_time(sizes), n_tags, strength
        self.n_features = sum(table.rows.width for table in tables)
        self._features, self._words = _Sum(_stacked(tables)), _Sum(_chosen(tables, self.order.places))
        self.tags = torch.from_numpy(tags[self.order.places])
        self.dtype = torch.float64 if len(tags) * n_tags <= FEW else torch.float32
        met = F.one_hot(self.tags, n_tags).to(self.dtype)
        counts = self._back(met).flatten()
        # Where few pairs are met, the others are not even numbers.
        self.pairs = torch.nonzero(counts > 0).flatten() if seen else torch.arange(counts.numel())
        follow = self.tags[self.order.before] * n_tags + self.tags[self.order.n_sentences :]
        ends = met[self.order.last].sum(0)
        between = torch.bincount(follow, minlength=n_tags * n_tags)
        start = met[: self.order.n_sentences].sum(0)
        self.met = torch.cat([part.double() for part in (counts[self.pairs], between, start, ends)])

    def zero(self) -> Tensor:
        return torch.zeros_like(self.met)

    def weights(self, x: Tensor) -> ChainWeights:
        """The numbers of x in their places."""
        n, pairs = self.n_tags, len(self.pairs)
        unary = torch.zeros(self.n_features * n, dtype=self.dtype)
        unary[self.pairs] = x[:pairs].to(self.dtype)
        between, start, end = x[pairs:].to(self.dtype).split([n * n, n, n])
        return ChainWeights(unary.view(-1, n), between.view(n, n), start, end)

    def __call__(self, x: Tensor) -> tuple[float, Tensor]:
        weights = self.weights(x)
        emissions = self._words(self._features(weights.unary))
        found = sums(self.order, emissions, weights.between, weights.start, weights.end)
        expected = [self._back(found.tags).flatten()[self.pairs], found.pairs.flatten(), found.start, found.end]
        gradient = torch.cat([part.double() for part in expected]).sub_(self.met).add_(x, alpha=2 * self.strength)
        return found.log_z - float(self.met @ x) + self.strength * float(x @ x), gradient

    def _back(self, tags: Tensor) -> Tensor:
        """Sums over the words that have each feature, (F, C)."""
        return self._features.transposed(self._words.transposed(tags))


def _stacked(tables: Sequence[Table]) -> SparseRows:
    """The rows of all tables one below the other, columns as among all."""
    columns = np.concatenate([table.rows.columns + table.first for table in tables])
    sizes = np.concatenate([table.rows.sizes for table in tables])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return SparseRows(columns, np.ones(len(columns)), starts, sum(table.rows.width for table in tables))


def _chosen(tables: Sequence[Table], places: np.ndarray) -> SparseRows:
    """Of each word, its row of every table."""
    firsts = np.cumsum([0, *(len(table.rows) for table in tables)])
    index = np.stack([table.index[places] + first for table, first in zip(tables, firsts, strict=False)], 1)
    starts = np.arange(len(places) + 1) * len(tables)
    return SparseRows(index.ravel(), np.ones(index.size), starts, int(firsts[-1]))


def emissions_of(tables: Sequence[Table], unary: Tensor) -> Tensor:
    """What the features of each word weigh for each tag, (N, C), sentences end to end."""
    total = torch.zeros(len(tables[0].index), unary.shape[1], dtype=unary.dtype, device=unary.device)
    for table in tables:
        columns, starts, index = (
            torch.from_numpy(part).to(unary.device)
            for part in (table.rows.columns + table.first, table.rows.starts[:-1].copy(), table.index)
        )
        total += F.embedding_bag(columns, unary, starts, mode="sum")[index]
    return total
