"""Taggers that read the words themselves and are fitted at once: base of `most_frequent`, `hmm` and `crf`.

What such a model gives for each word are its emissions, a number for each tag; a model whose tags depend on each other
then chooses those of a sentence together (`regard.layers.crf.Decodes`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.state import State
from regard.fitting.model import FittedConfig, FittedModel
from regard.fitting.word_features import clipped

LETTERS = "letters"
HIGHEST, NO_CHARACTER = 0x10FFFF, 0xFFFD
EXAMPLE_SENTENCES = (("a", "b", "c"), ("c", "a"), ("d", "e", "f", "b"), ("b",), ("g", "h", "a", "i", "j", "c"))


@dataclass(frozen=True)
class WordTaggerConfig(FittedConfig):
    """n_classes: tags."""

    n_classes: int

    def __post_init__(self) -> None:
        check(self.n_classes > 0, f"n_classes must be positive, found {self.n_classes}")

    def build(self) -> WordTagger:
        raise NotImplementedError(f"{type(self).__name__} must write build")

    def example(self) -> _Example:
        return _Example(self.n_classes)


class WordTagger(FittedModel):
    """Words by the numbers of their characters, (B, T, L) with 0 after the end of each, to emissions (B, T, C)."""

    reads = LETTERS

    def __init__(self, config: WordTaggerConfig) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        """Of the columns `words` and `tags`, and of the rows' `tags` (`Ragged`), the same by number."""

    @abstractmethod
    def emissions(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """What each word says for each tag, (N, C) float64, sentences end to end."""

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        sentences = words_of(tokens, context.lengths)
        sizes = torch.tensor([len(words) for words in sentences], device=tokens.device)
        found = torch.zeros(*tokens.shape[:2], self.config.n_classes, dtype=self.like.dtype, device=tokens.device)
        if int(sizes.sum()):
            real = torch.arange(tokens.shape[1], device=tokens.device) < sizes[:, None]
            found[real] = self.emissions(sentences).to(found)
        return found, None


def words_of(tokens: Tensor, lengths: Tensor | None) -> list[list[str]]:
    """Words from the numbers of their characters, the first `lengths` of each row; what is none becomes U+FFFD."""
    numbers = tokens.cpu().numpy()
    numbers = np.where((numbers < 0) | (numbers > HIGHEST), NO_CHARACTER, numbers).astype("<u4")
    shape = numbers.shape
    text = np.ascontiguousarray(numbers).view(f"<U{shape[2]}")[..., 0] if shape[2] else np.zeros(shape[:2], "<U1")
    ends = [shape[1]] * shape[0] if lengths is None else lengths.tolist()
    return [row[:end].tolist() for row, end in zip(text, ends, strict=True)]


def given_to(data: GivenExamples) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """The words of each sentence, the tags of all, end to end, and how long each sentence is."""
    sentences = [[clipped(word) for word in words] for words in data.column("words")]
    tags = np.asarray(data.rows.tags.values, np.int64)
    return sentences, tags, np.asarray([len(words) for words in sentences], np.int64)


@dataclass(frozen=True)
class _Example:
    """A few sentences, each word of the next tag."""

    n_classes: int

    @property
    def rows(self) -> _Example:
        return self

    @property
    def tags(self) -> _Example:
        return self

    @property
    def values(self) -> np.ndarray:
        return np.arange(sum(map(len, EXAMPLE_SENTENCES))) ** 2 % self.n_classes

    def column(self, name: str) -> Sequence[Sequence[str]]:
        return EXAMPLE_SENTENCES
