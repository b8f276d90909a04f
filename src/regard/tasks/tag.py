"""TagCodec: words to their ids and spellings, and tags to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.core.facts import Facts
from regard.data.example import Tagged
from regard.data.ragged import ragged
from regard.data.rows import TagRows
from regard.data.tokenizer import Tokenizer
from regard.tasks.codec import Codec, files_of
from regard.tasks.vocabulary import SpelledWords, class_number


@dataclass(frozen=True, eq=False)
class TagCodec(Codec):
    """tokenizer: of single words. classes: the tags, by number."""

    tokenizer: Tokenizer
    classes: tuple[str, ...]

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, {"classes": self.classes})

    @property
    def facts(self) -> Facts:
        return Facts(self.tokenizer.vocab_size, n_classes=len(self.classes), spelled=True)

    @cached_property
    def _words(self) -> SpelledWords:
        return SpelledWords(self.tokenizer)

    def knows(self, word: str) -> bool:
        """Whether a word has a token of its own."""
        return self.read([word])[0, 0] != self.tokenizer.unknown_id

    def read(self, words: Sequence[str]) -> np.ndarray:
        """Ids and spellings, (n, 1 + L)."""
        return self._words(words)

    def places(self, words: Sequence[str]) -> np.ndarray:
        """Where the tag of each word is told."""
        return np.arange(len(words))

    def numbers(self, example: Tagged) -> np.ndarray:
        """The tags by number."""
        return np.array([class_number(tag, self.classes, example.where, "tag") for tag in example.tags])

    def rows(self, examples: Sequence[Tagged]) -> TagRows:
        return TagRows(ragged(self.read(one.words) for one in examples), ragged(map(self.numbers, examples)))
