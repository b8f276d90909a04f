"""TagCodec: words to their ids and spellings, and tags to numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.data.example import Tagged
from regard.data.ragged import ragged
from regard.data.rows import TagRows
from regard.data.tokenizer import Tokenizer
from regard.layers.spelling import spelling
from regard.tasks.contract import CODEC, TOKENIZER, Codec
from regard.tasks.vocabulary import class_number


@dataclass(frozen=True, eq=False)
class TagCodec(Codec):
    """tokenizer: of single words. classes: the tags, by number."""

    tokenizer: Tokenizer
    classes: tuple[str, ...]

    def files(self) -> dict[str, bytes]:
        return {
            TOKENIZER: json.dumps(self.tokenizer.to_dict(), ensure_ascii=False).encode(),
            CODEC: json.dumps({"classes": list(self.classes)}, ensure_ascii=False).encode(),
        }

    @cached_property
    def _known(self) -> dict[str, np.ndarray]:
        return {}

    def word(self, word: str) -> np.ndarray:
        """The id of a word and its spelling, (1 + L,)."""
        found = self._known.get(word)
        if found is None:
            ids = self.tokenizer.encode(word)
            number = int(ids[0]) if len(ids) == 1 else self.tokenizer.unknown_id or 0
            found = self._known[word] = np.concatenate([[number], spelling(word)])
        return found

    def knows(self, word: str) -> bool:
        """Whether a word has a token of its own."""
        return self.word(word)[0] != self.tokenizer.unknown_id

    def read(self, words: Sequence[str]) -> np.ndarray:
        return np.stack([self.word(word) for word in words])

    def places(self, words: Sequence[str]) -> np.ndarray:
        """Where the tag of each word is told."""
        return np.arange(len(words))

    def numbers(self, example: Tagged) -> np.ndarray:
        """The tags by number."""
        return np.array([class_number(tag, self.classes, example.where, "tag") for tag in example.tags])

    def rows(self, examples: Sequence[Tagged]) -> TagRows:
        return TagRows(ragged(self.read(one.words) for one in examples), ragged(map(self.numbers, examples)))
