"""The half of a classifier that is solved for: a weight for each n-gram and class, beside a net that learns by steps.

    log p = log softmax(W^T x + b)        x: the n-grams of a text (regard/layers/hashed_grams.py)

It is the classifier of regard/models/linear.py, with the weights of naive Bayes, over words as the net reads them: by
their spelling. Of both kinds of n-grams, of words and of characters, those that training met are a vector of length 1,
so that long texts do not count for more than short ones. Before it is solved for every class is as likely as another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.context import real_tokens
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.fitting.classes import Solving, solve
from regard.fitting.evidence import Evidence
from regard.fitting.sparse import SparseRows
from regard.layers.hashed_grams import Grams, hashed_grams, named_grams
from regard.layers.spelled import SPELLING_LENGTH, spelling
from regard.models.linear import by_class

TOLERANCE, MOST_STEPS = 1e-3, 50
MOST_ROWS, FEWEST_ROWS, MOST_WEIGHTS = 1 << 22, 1 << 14, 1 << 23
AT_ONCE = 1 << 15  # words whose n-grams are in memory at one time
BYTES_A_WORD = 256  # of memory that a solver needs, about


def rows_for(n_classes: int) -> int:
    """Columns for so many classes, a power of two; 0 where they would be too few to tell n-grams apart."""
    most = min(MOST_ROWS, MOST_WEIGHTS // _width(n_classes))
    rows = 1 << (most.bit_length() - 1) if most else 0
    return rows if rows >= FEWEST_ROWS else 0


def _width(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes


class _Part(NamedTuple):
    """Entries of the rows of some texts: how many each has, their columns and values."""

    sizes: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class LinearHalf(nn.Module):
    """weights (R, K): W. bias (K,): b. Of two classes K is 1. Neither is learnt by steps.

    skip  words that may stand between the two of a pair.
    """

    weights: Tensor
    bias: Tensor

    def __init__(self, rows: int, n_classes: int, skip: int = 0) -> None:
        super().__init__()
        self.rows, self.n_classes, self.skip = rows, n_classes, skip
        self.register_buffer("weights", torch.zeros(rows, _width(n_classes)))
        self.register_buffer("bias", torch.zeros(_width(n_classes)))

    def forward(self, words: Tensor, lengths: Tensor | None = None) -> Tensor:
        """log p (B, C) of texts as words with their spelling, (B, T, 1 + L ..)."""
        real = real_tokens(lengths, words)
        if torch.compiler.is_compiling():  # in parts it would be a graph of one size
            return by_class(self._scores(words, real), self.n_classes).log_softmax(-1)
        at_once = max(1, AT_ONCE // max(1, words.shape[1]))
        z = [self._scores(*some) for some in zip(words.split(at_once), real.split(at_once), strict=True)]
        return by_class(torch.cat(z), self.n_classes).log_softmax(-1)

    def _scores(self, words: Tensor, real: Tensor) -> Tensor:
        # Not as a matrix product, which would be made in fewer digits where a net's are.
        return sum(((values[..., None] * w).sum(1) for _, values, w in self._known(words, real)), self.bias)

    def _known(self, words: Tensor, real: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Of both kinds: columns (B, N), how much each counts, and its weights (B, N, K)."""
        for columns, there in self._grams(words, real):
            weights = F.embedding(columns, self.weights)
            yield columns, of_length_one(there & (weights != 0).any(-1)).to(weights.dtype), weights

    def _grams(self, words: Tensor, real: Tensor) -> tuple[Grams, Grams]:
        return hashed_grams(words[..., 1 : 1 + SPELLING_LENGTH], real, self.rows, self.skip)

    @torch.no_grad()
    def solve(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> None:
        """Take W and b from the texts of the training part; of very many texts from every so many."""
        words = int(np.sum(data.rows.sizes))
        apart = 1 + words * BYTES_A_WORD // settings.memory
        numbers = np.arange(0, len(data.rows.sizes), apart)
        if apart > 1:
            tell.note(f"the linear half is solved for with {len(numbers):,} of {len(data.rows.sizes):,} texts")
        labels = np.asarray(data.rows.labels, np.int64)[numbers]
        rows = self._read(data, numbers)
        used = rows.frequencies() > 0
        kept = rows.kept(used)
        how = Solving(self.n_classes, "both", None, TOLERANCE, MOST_STEPS, class_weights=settings.class_weights)
        found = solve(kept, labels, how, tell)
        self.weights.zero_()
        self.weights[torch.from_numpy(used)] = found.weights.to(self.weights)
        self.bias.copy_(found.bias)
        if not found.converged:
            tell.note(f"the linear half did not converge: its gradient is {found.gradient:.1e} of the first")

    def _read(self, data: GivenExamples, numbers: np.ndarray) -> SparseRows:
        parts = list(self._parts(data, numbers))
        starts = np.concatenate([[0], np.cumsum(np.concatenate([part.sizes for part in parts]))])
        columns, values = (np.concatenate([part[place] for part in parts]) for place in (1, 2))
        return SparseRows(columns, values, starts, self.rows)

    def _parts(self, data: GivenExamples, numbers: np.ndarray) -> Iterator[_Part]:
        sizes = np.cumsum(data.rows.sizes[numbers])
        for chosen in np.split(numbers, np.flatnonzero(np.diff(sizes // AT_ONCE)) + 1):
            batch = data.rows.batch_of(chosen, chosen)
            grams = self._grams(batch.tokens, real_tokens(batch.lengths, batch.tokens))
            columns, there = torch.cat([one.columns for one in grams], 1), torch.cat([one.there for one in grams], 1)
            values = torch.cat([of_length_one(one.there) for one in grams], 1)
            yield _Part(there.sum(1).numpy(), columns[there].numpy(), values[there].numpy())

    def evidence(self, words: list[str]) -> Evidence:
        """What each n-gram of a text adds to each class."""
        spelt = torch.from_numpy(np.array([spelling(word) for word in words] or [spelling("")], np.int64))
        names = named_grams(spelt, self.rows, self.skip)
        read = F.pad(spelt, (1, 0))[None].to(self.weights.device)  # the number of a word does not matter here
        found = list(self._known(read, torch.ones_like(read[..., 0], dtype=torch.bool)))
        columns, values, weights = (torch.cat([one[part] for one in found], 1)[0].cpu() for part in range(3))
        there = values > 0
        said = by_class(weights[there].double(), self.n_classes).numpy()
        offsets = by_class(self.bias[None].double(), self.n_classes)[0].cpu().numpy()
        return Evidence([names[one] for one in columns[there].tolist()], values[there].double().numpy(), said, offsets)


def of_length_one(there: Tensor) -> Tensor:
    """How much each n-gram counts, (B, N)."""
    return there / there.sum(1, keepdim=True).clamp(min=1).double().sqrt()
