"""The most frequent tag of each word, whatever stands beside it. What every other tagger has to beat.

p(c | w) = n_(w,c) / n_w          of a word that was met
p(c)     = of the words that were met once, where there are any: what a new word is like
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.fitting.grams import Vocabulary
from regard.fitting.model import require
from regard.fitting.tag_lexicon import TagLexicon, lexicon
from regard.models.word_tagger import WordTagger, WordTaggerConfig, given_to

LEAST = 1e-9  # the chance of a tag that a word was never met with


@dataclass(frozen=True)
class MostFrequentConfig(WordTaggerConfig, kind="most_frequent"):
    """n_classes: tags."""

    def build(self) -> MostFrequent:
        return MostFrequent(self)


class LexiconTagger(WordTagger):
    """A tagger with a lexicon."""

    words: Tensor
    starts: Tensor
    tags: Tensor
    counts: Tensor

    def __init__(self, config: WordTaggerConfig) -> None:
        super().__init__(config)
        self.register_buffer("words", torch.zeros(0, dtype=torch.uint8))  # text in UTF-8, a line each
        for name in ("starts", "tags", "counts"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        self.lexicon = _empty()
        self._read_from = self.words

    def learn_lexicon(self, sentences: Sequence[Sequence[str]], tags: np.ndarray) -> dict[str, Tensor]:
        """The lexicon of sentences, as the numbers that hold it."""
        found = lexicon([word for words in sentences for word in words], tags, self.config.n_classes)
        arrays = {"words": found.words.packed(), "starts": found.starts, "tags": found.tags, "counts": found.counts}
        return {name: torch.from_numpy(value) for name, value in arrays.items()}

    def settle(self) -> None:
        if self.words.is_meta or self.words is self._read_from:
            return
        self._read_from = self.words
        words, starts, tags, counts = (part.cpu().numpy() for part in (self.words, self.starts, self.tags, self.counts))
        self.lexicon = TagLexicon(Vocabulary.unpacked(words), starts, tags, counts)
        n_words, pairs = len(self.lexicon.words), len(tags)
        require(len(starts) == n_words + 1 and len(counts) == pairs, "the number of words")
        require(int(starts[0]) == 0 and int(starts[-1]) == pairs, "where the tags of a word begin")
        require(bool((np.diff(starts) > 0).all()) and bool((counts > 0).all()), "the number of tags of a word")
        require(not pairs or 0 <= int(tags.min()) <= int(tags.max()) < self.config.n_classes, "a tag")


class MostFrequent(LexiconTagger):
    """log p(c | w)."""

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        sentences, tags, _ = given_to(data)
        self.take(self.learn_lexicon(sentences, tags))
        return {"told": f"{len(self.lexicon.words):,} words, {self.config.n_classes:,} tags"}

    def emissions(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        flat, n_tags = [word for words in sentences for word in words], self.config.n_classes
        counts, known = self.lexicon.rows(flat, n_tags)
        once = self.lexicon.of_tags(n_tags, self.lexicon.totals == 1)
        counts[~known] = once if once.sum() else self.lexicon.of_tags(n_tags)
        chances = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        return torch.from_numpy(np.log(np.maximum(chances, LEAST))).log_softmax(-1)


def _empty() -> TagLexicon:
    none = np.zeros(0, np.int64)
    return TagLexicon(Vocabulary(), np.zeros(1, np.int64), none, none)


@register("most_frequent", sizes={size: {} for size in ("tiny", "small", "base", "paper")}, task="tagged")
def most_frequent(spec: DataSpec) -> MostFrequentConfig:
    """The most frequent tag of each word, whatever stands beside it."""
    return MostFrequentConfig(spec.n_classes)
