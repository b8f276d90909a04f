"""Words in pieces: tagged text in the tokens of a pre-trained model, one piece of each word carrying its tag.

    words      the  unhappy       dog           first piece of each (Devlin et al. 2019, 5.3)
    pieces     the  _un   happy   _dog
    tags       DET  ADJ   -100    NOUN

An encoder that looks back only has read a whole word at its last piece, and there the last one carries the tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.core.data_spec import DataSpec
from regard.data.batch import NOT_COUNTED
from regard.data.example import Tagged, column
from regard.data.ragged import ragged
from regard.data.rows import TagRows
from regard.tasks.processor import files_of
from regard.tasks.tag import TagProcessor


@dataclass(frozen=True, eq=False)
class PieceProcessor(TagProcessor):
    """last: the last piece of a word carries its tag, not the first."""

    last: bool = False

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, {"classes": self.classes, "last": self.last})

    @property
    def spec(self) -> DataSpec:
        return replace(super().spec, spelled=False)

    def knows(self, word: str) -> bool:
        return self.tokenizer.unknown_id not in self._pieces([word])[0].tolist()

    def read(self, words: Sequence[str]) -> np.ndarray:
        """The ids of a sentence with an `<eos>` on each side."""
        eos = [self.tokenizer.eos_id]
        return np.concatenate([eos, *self._pieces(words), eos])

    def places(self, words: Sequence[str]) -> np.ndarray:
        ends = np.cumsum([len(piece) for piece in self._pieces(words)])
        return ends if self.last else np.concatenate([[0], ends[:-1]]) + 1

    def rows(self, examples: Sequence[Tagged]) -> TagRows:
        words = column(examples, "words")
        text, tags = ragged(map(self.read, words)), self.tags(examples)
        spread = np.full(len(text.values), NOT_COUNTED, text.values.dtype)
        for number, one in enumerate(words):
            spread[text.starts[number] + self.places(one)] = tags[number]
        return TagRows(text, replace(text, values=spread))

    def _pieces(self, words: Sequence[str]) -> list[np.ndarray]:
        """The pieces of each word, which brings the space before it along; none is left without a piece."""
        found = [self.tokenizer.encode(word if i == 0 else f" {word}") for i, word in enumerate(words)]
        nothing = np.array([self.tokenizer.eos_id])
        return [ids if len(ids) else nothing for ids in found]
