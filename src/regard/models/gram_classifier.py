"""Classifiers over the n-grams of a text: a score for each class that is a sum over what occurs in it.

    z_c = b_c + sum_f x_f w_fc

    x_f    how much n-gram f counts in the text, 0 where it does not occur
    w_fc   what it says for class c

Which n-grams there are is learnt with the weights and kept with them (see regard/fitting/grams.py); one that training
never met counts for nothing. The text is read by its characters, so that no tokenizer has decided what a word is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.state import State
from regard.fitting.evidence import Evidence, Sides, beyond_mean
from regard.fitting.grams import Vocabulary, Words, character_grams, word_grams, words_of
from regard.fitting.model import FittedConfig, FittedModel, require
from regard.fitting.sparse import SparseRows, side_by_side

AT_ONCE = 1 << 20  # weights that are compared together
LONGEST = 32  # words or characters in an n-gram
EXAMPLE_TEXTS = ("abc cde abd", "fgh def ggh abc", "bcd hij cde", "abd abd fgh", "", "jji hij abc cc")


@dataclass(frozen=True)
class GramConfig(FittedConfig):
    """n_classes: labels. order: words in an n-gram at most, 0 for none. lower: upper and lower case are one.

    characters  shortest and longest n-gram of characters within words; empty for none.
    min_texts   texts of the training part in which an n-gram must occur to be kept.
    skip        words that may stand between the two of a pair, 0 for neighbours alone.
    """

    n_classes: int
    order: int = 2
    characters: tuple[int, ...] = ()
    min_texts: int = 1
    lower: bool = True
    skip: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        check(self.n_classes > 0, f"n_classes must be positive, found {self.n_classes}")
        check(0 <= self.order <= LONGEST, f"order must lie in 0 .. {LONGEST}, found {self.order}")
        told = f"characters must be a shortest and a longest n-gram, such as [2, 5], found {list(self.characters)}"
        check(len(self.characters) in (0, 2), told)
        check(not self.characters or 1 <= self.characters[0] <= self.characters[1] <= LONGEST, told)
        check(self.order > 0 or bool(self.characters), "order = 0 and no characters: there is nothing to count")
        check(0 <= self.skip < LONGEST, f"skip must lie in 0 .. {LONGEST - 1}, found {self.skip}")
        check(self.min_texts >= 1, f"min_texts must be 1 or more, found {self.min_texts}")

    def build(self) -> GramClassifier:
        raise NotImplementedError(f"{type(self).__name__} must write build")

    def example(self) -> ExampleTexts:
        return ExampleTexts(self.n_classes)


class GramClassifier(FittedModel):
    """Base of `naive_bayes` and `linear`. Two blocks of columns, those of words and those of characters."""

    words: Tensor
    characters: Tensor
    reads = "text"

    def __init__(self, config: GramConfig) -> None:
        super().__init__()
        self.config = config
        for name in ("words", "characters"):  # the n-grams, as text in UTF-8, a line each
            self.register_buffer(name, torch.zeros(0, dtype=torch.uint8))
        self._vocabularies = Vocabulary(), Vocabulary()
        self._read_from = self.words, self.characters

    @abstractmethod
    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        """Of the column `text`, and of the rows' `labels` (n,), classes by number."""

    @abstractmethod
    def values(self, blocks: Sequence[SparseRows]) -> SparseRows:
        """How much every n-gram counts, x, of how often each occurs."""

    @abstractmethod
    def scores(self, rows: SparseRows) -> Tensor:
        """z (B, C) in float64."""

    @abstractmethod
    def weights_of(self, columns: np.ndarray) -> np.ndarray:
        """w (n, C) of some columns, float64."""

    @property
    @abstractmethod
    def offsets(self) -> np.ndarray:
        """b (C,), float64."""

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """log softmax(z), (B, C), of texts by the numbers of their characters, (B, T)."""
        rows = self.values(self._blocks(words_of(texts_of(tokens, context.lengths), self.config.lower)))
        return self.scores(rows).log_softmax(-1).to(self.like.dtype), None

    def learn_grams(self, texts: Sequence[str], tell: Tell) -> list[SparseRows]:
        """Take the n-grams of texts for the model's own; how often each occurs in each text, a table a block."""
        found = words_of(texts, self.config.lower)
        tell("counting", 0.5)
        self._vocabularies = Vocabulary(), Vocabulary()
        blocks = self._blocks(found, learn=True)
        tell("counting", 1.0)
        if self.config.min_texts > 1:
            kept = [block.frequencies() >= self.config.min_texts for block in blocks]
            words, characters = (own.kept(part) for own, part in zip(self._vocabularies, kept, strict=True))
            self._vocabularies = words, characters
            blocks = [block.kept(columns) for block, columns in zip(blocks, kept, strict=True)]
        self.words, self.characters = (
            torch.from_numpy(own.packed()).to(self.like.device) for own in self._vocabularies
        )
        self._read_from = self.words, self.characters
        return blocks

    @property
    def n_grams(self) -> int:
        return sum(map(len, self._vocabularies))

    def name_of(self, column: int) -> str:
        """An n-gram for the eye; of characters in brackets, so that blanks show."""
        n_words = len(self._vocabularies[0])
        if column < n_words:
            return self._vocabularies[0].names[column]
        return f"[{self._vocabularies[1].names[column - n_words]}]"

    def evidence(self, text: str) -> Evidence:
        """What decided: every n-gram of a text that is known, how much it counts and what it says."""
        rows = self.values(self._blocks(words_of([text], self.config.lower)))
        names = [self.name_of(int(column)) for column in rows.columns]
        return Evidence(names, rows.values, self.weights_of(rows.columns), self.offsets)

    def heaviest(self, numbers: Sequence[int], count: int) -> list[Sides]:
        """Of each of some classes the n-grams that say most for it, and against it, beyond what they say on average."""
        most = min(count, self.n_grams)
        found = []
        for weights in self.beyond_average(numbers).T:
            order = np.argsort(-weights, kind="stable")
            shown = [*order[:most], *order[::-1][:most]]
            told = [(self.name_of(int(column)), float(weights[column])) for column in shown]
            found.append((told[:most], told[most:]))
        return found

    def beyond_average(self, numbers: Sequence[int]) -> np.ndarray:
        """What every n-gram says for some classes beyond what it says for all on average, (F, len(numbers))."""
        found = np.zeros((self.n_grams, len(numbers)))
        step = max(1, AT_ONCE // self.config.n_classes)
        for first in range(0, self.n_grams, step):
            part = self.weights_of(np.arange(first, min(first + step, self.n_grams)))
            found[first : first + step] = beyond_mean(part)[:, list(numbers)]
        return found

    def settle(self) -> None:
        if self.words.is_meta or (self.words is self._read_from[0] and self.characters is self._read_from[1]):
            return
        self._read_from = self.words, self.characters
        words, characters = (Vocabulary.unpacked(part.cpu().numpy()) for part in (self.words, self.characters))
        self._vocabularies = words, characters

    def require_columns(self, found: int) -> None:
        """Refuse weights of another number of n-grams."""
        require(found == self.n_grams, f"the number of weights, {found} for {self.n_grams} n-grams,")

    def _blocks(self, words: Words, learn: bool = False) -> list[SparseRows]:
        first, second = self._vocabularies
        config = self.config
        numbers = [part.added if learn else part.found for part in (first, second)]
        shortest, longest = config.characters or (1, 0)
        return [
            word_grams(words, config.order, numbers[0], lambda: len(first), config.skip),
            character_grams(words, shortest, longest, numbers[1], lambda: len(second)),
        ]


def texts_of(tokens: Tensor, lengths: Tensor | None) -> list[str]:
    """Texts from the numbers of their characters, the first `lengths` of each row; what is none becomes U+FFFD."""
    rows = tokens.cpu().numpy().astype("<u4")
    ends = [rows.shape[1]] * len(rows) if lengths is None else lengths.tolist()
    return [row[:end].tobytes().decode("utf-32-le", "replace") for row, end in zip(rows, ends, strict=True)]


def labels_of(data: GivenExamples) -> np.ndarray:
    """The class of each example."""
    return np.asarray(data.rows.labels, np.int64)


def concatenated(blocks: Sequence[SparseRows]) -> SparseRows:
    """Words, then characters."""
    return side_by_side([block for block in blocks if block.width] or blocks[:1])


@dataclass(frozen=True)
class ExampleTexts:
    """A few texts, each of the next class, or with the next number."""

    n_classes: int

    @property
    def rows(self) -> ExampleTexts:
        return self

    @property
    def labels(self) -> np.ndarray:
        return np.arange(max(len(EXAMPLE_TEXTS), self.n_classes)) % self.n_classes

    @property
    def numbers(self) -> np.ndarray:
        """Where a number is told, and not a class."""
        return np.arange(len(self.labels)) % 4 - 1.5

    @property
    def hits(self) -> np.ndarray:
        """Where several labels are told: that of the class, and the first of every other text."""
        found = np.arange(self.n_classes)[None] == self.labels[:, None]
        found[::2, 0] = True
        return found

    def column(self, name: str) -> list[str]:
        return [EXAMPLE_TEXTS[number % len(EXAMPLE_TEXTS)] for number in range(len(self.labels))]
