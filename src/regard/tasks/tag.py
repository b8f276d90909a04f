"""Tagged words to numbers: words to their ids and spellings, or to the tokens of a pre-trained model, and tags.

Of the pieces of a word one carries its tag, the first (Devlin et al. 2019, 5.3):

    words      the  unhappy       dog
    pieces     the  _un   happy   _dog
    tags       DET  ADJ   -100    NOUN

An encoder that looks back only has read a whole word at its last piece, and there the last one carries the tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from regard.core.data_spec import DataSpec
from regard.core.progress import watched
from regard.data.batch import NOT_COUNTED
from regard.data.example import Tagged, column
from regard.data.ragged import Ragged, ragged
from regard.data.rows import TagRows
from regard.data.tokenizer import Tokenizer
from regard.tasks.processor import Processor, files_of
from regard.tasks.vocabulary import SpelledWords, class_number


@dataclass(frozen=True, eq=False)
class TagProcessor(Processor):
    """tokenizer: of single words. classes: the tags, by number."""

    tokenizer: Tokenizer
    classes: tuple[str, ...]

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, {"classes": self.classes})

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.tokenizer.vocab_size, n_classes=len(self.classes), spelled=True)

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

    def rows(self, examples: Sequence[Tagged]) -> TagRows:
        text = ragged(map(self._words.numbers, watched(column(examples, "words"), "tokenising", "sentences")))
        return TagRows(replace(text, table=self._words.table), self.tags(examples))

    def tags(self, examples: Sequence[Tagged]) -> Ragged:
        """The tags of all words by number."""
        place = {name: number for number, name in enumerate(self.classes)}
        found = ragged([place.get(tag, -1) for tag in tags] for tags in column(examples, "tags"))
        for at in np.flatnonzero(found.values < 0)[:1]:
            one = examples[int(np.searchsorted(found.starts, at, side="right")) - 1]
            for tag in one.tags:
                class_number(tag, self.classes, one.where, "tag")
        return found


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
