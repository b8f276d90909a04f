"""TagProcessor: words to their ids and spellings, and tags to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from regard.core.data_spec import DataSpec
from regard.core.progress import watched
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
