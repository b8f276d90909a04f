"""A hidden Markov model of tags: each depends on the two before it, and each word on its tag alone.

    t* = argmax_t  sum_i log p(t_i | t_(i-2), t_(i-1)) + log p(w_i | t_i)

    p(w | t)       = n_(w,t) / n_t of a word that was met
    p(w | t)       ~ p(t | ending of w) / p(t) of one that was not: the longest known ending, each smoothed by the one
                     that is a letter shorter, p_k = (f_k + theta p_(k-1)) / (1 + theta)
    theta          the spread of the tags' chances
    p(t_3 | ...)   trigrams with deleted interpolation, see regard/fitting/trigram.py

Endings are those of rare words, apart for words that begin with a capital and for those that do not. Brants 2000, TnT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.errors import DataError
from regard.fitting import trigram
from regard.fitting.grams import Vocabulary
from regard.fitting.model import require
from regard.fitting.tag_lexicon import TagLexicon
from regard.layers.crf import Chain
from regard.models.most_frequent import LexiconTagger
from regard.models.word_tagger import WordTaggerConfig, given_to

MOST_TAGS = 256
HOPELESS = -50.0  # log p of a word with a tag that it was never met with
CAPITAL, SMALL = "^", "_"  # before an ending: what its word begins with


@dataclass(frozen=True)
class HmmConfig(WordTaggerConfig, kind="hmm"):
    """suffix: letters of an ending at most. rare: a word met so often at most teaches endings.

    beam  tags of a word that are followed; as many as there are makes the search exact.
    """

    suffix: int = 10
    rare: int = 10
    beam: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        check(0 <= self.suffix <= 32, f"suffix must lie in 0 .. 32, found {self.suffix}")
        check(self.rare >= 1, f"rare must be 1 or more, found {self.rare}")
        check(self.beam >= 1, f"beam must be 1 or more, found {self.beam}")

    def build(self) -> Hmm:
        return Hmm(self)


class Hmm(LexiconTagger):
    """log p(w | t) of each word, and the tags of a sentence together."""

    config: HmmConfig
    steps: Tensor
    pairs: Tensor
    endings: Tensor
    ending_log_p: Tensor
    tag_log_p: Tensor

    def __init__(self, config: HmmConfig) -> None:
        super().__init__(config)
        self.register_buffer("steps", torch.zeros(0, 0, 0))  # log p(t_3 | t_1, t_2), the boundary last
        self.register_buffer("pairs", torch.zeros(0, 0))  # log p(t_2 | t_1), the same
        self.register_buffer("endings", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("ending_log_p", torch.zeros(0, 0))  # log p(t | ending)
        self.register_buffer("tag_log_p", torch.zeros(0))
        self._endings, self._endings_from = Vocabulary(), self.endings

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        n_tags = self.config.n_classes
        if n_tags > MOST_TAGS:
            raise DataError(
                f"{n_tags:,} tags are more than the {MOST_TAGS} whose trigrams fit: take most_frequent or crf"
            )
        sentences, tags, sizes = given_to(data)
        tell("counting", 0.5)
        counts = trigram.trigram_counts(tags, sizes, n_tags)
        shares = trigram.interpolation(counts)
        steps, pairs = trigram.log_transitions(counts, shares), counts.sum(0)
        found = self.learn_lexicon(sentences, tags)
        self.take(found)
        endings, log_p, theta = _endings(self.lexicon, self.config)
        chances = self.lexicon.of_tags(n_tags) / max(1, len(tags))
        numbers = {
            "steps": steps,
            "pairs": np.log(np.maximum(pairs / np.maximum(pairs.sum(1, keepdims=True), 1), 1e-12)),
            "ending_log_p": log_p,
            "tag_log_p": np.log(np.maximum(chances, 1e-12)),
        }
        self.take(
            {"endings": torch.from_numpy(endings.packed())}
            | {name: torch.from_numpy(np.asarray(value)).float() for name, value in numbers.items()}
        )
        tell("counting", 1.0)
        return {
            "told": f"{len(self.lexicon.words):,} words, {len(endings):,} endings, {n_tags:,} tags",
            "interpolation": [round(float(share), 6) for share in shares],
            "theta": theta,
        }

    def emissions(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        flat, n_tags = [word for words in sentences for word in words], self.config.n_classes
        of_tag = self.tag_log_p.cpu().double().numpy()
        counts, known = self.lexicon.rows(flat, n_tags)
        totals = np.maximum(self.lexicon.of_tags(n_tags), 1)
        found = np.where(counts > 0, np.log(np.maximum(counts, 1) / totals), HOPELESS)
        unknown = np.flatnonzero(~known)
        rows = self._endings.found([self._ending(flat[place]) for place in unknown])
        found[unknown] = self.ending_log_p.cpu().double().numpy()[rows] - of_tag
        return torch.from_numpy(found)

    def decode(self, vectors: Tensor, lengths: Tensor, allowed: Chain | None = None) -> Tensor:
        steps, beam = self.steps.to(vectors), self.config.beam
        if allowed is not None:
            steps = steps.clone()
            inner = allowed.to(vectors)
            # A tag that may begin a sentence may follow any other: with one of them at each word there is a way.
            beam = max(beam, 1 + int(inner.start.isinf().sum()))
            steps[:-1, :-1, :-1] += inner.between
            steps[-1, :-1, :-1] += inner.between
            steps[-1, -1, :-1] += inner.start
        return trigram.viterbi(trigram.Lattice.of(steps, vectors, lengths, beam))

    def log_chances(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        return trigram.log_chances(self.steps.to(vectors), vectors, lengths, self.config.beam)

    def score_ways(self, vectors: Tensor, ways: Tensor) -> Tensor:
        steps, edge = self.steps.to(vectors), ways.new_full((len(ways), 1), len(self.steps) - 1)
        tags = torch.cat([edge, edge, ways, edge], 1)
        words = vectors.expand(len(ways), -1, -1).gather(-1, ways[..., None])[..., 0]
        return words.sum(1) + steps[tags[:, :-2], tags[:, 1:-1], tags[:, 2:]].sum(1)

    def chain(self) -> Chain:
        """log p(t_2 | t_1), of pairs alone."""
        return Chain(self.pairs[:-1, :-1], self.pairs[-1, :-1], self.pairs[:-1, -1])

    def settle(self) -> None:
        super().settle()
        if self.endings.is_meta or self.endings is self._endings_from:
            return
        self._endings_from, n_tags = self.endings, self.config.n_classes
        self._endings = Vocabulary.unpacked(self.endings.cpu().numpy())
        require(self.steps.shape == (n_tags + 1,) * 3 and self.pairs.shape == (n_tags + 1,) * 2, "the number of tags")
        require(self.ending_log_p.shape == (len(self._endings), n_tags), "the number of endings")
        require(bool((self._endings.found([CAPITAL, SMALL]) >= 0).all()), "the shortest ending")

    def _ending(self, word: str) -> str:
        """The longest known ending of a word."""
        every = endings_of(word, self.config.suffix)
        places = self._endings.found(every)
        return every[int(np.flatnonzero(places >= 0)[-1])]


def endings_of(word: str, longest: int) -> list[str]:
    """The endings of a word, the empty one first, each after what the word begins with.

    >>> endings_of("Rome", 2)
    ['^', '^e', '^me']
    """
    kind = CAPITAL if word[:1].isupper() else SMALL
    return [kind + word[len(word) - n :] for n in range(min(longest, len(word)) + 1)]


def _endings(found: TagLexicon, config: HmmConfig) -> tuple[Vocabulary, np.ndarray, float]:
    """Endings of rare words, log p(t | ending) of each, (S, C), and theta."""
    n_tags, names = config.n_classes, Vocabulary([CAPITAL, SMALL])
    of_tags = found.of_tags(n_tags)
    general = of_tags / max(1, of_tags.sum())
    theta = float(general.std(ddof=1)) if n_tags > 1 else 1.0
    rare = [found.words.names[number] for number in np.flatnonzero(found.totals <= config.rare).tolist()]
    counts, _ = found.rows(rare, n_tags)
    every = [endings_of(word, config.suffix) for word in rare]
    rows = names.added([ending for word in every for ending in word])
    total = np.zeros((len(names), n_tags))
    np.add.at(total, rows, np.repeat(counts, [len(word) for word in every], 0))
    smoothed = total / np.maximum(total.sum(1, keepdims=True), 1)
    shorter = names.found([name[0] + name[2:] for name in names.names])
    sizes = np.fromiter(map(len, names.names), np.int64, len(names))
    for size in range(1, int(sizes.max()) + 1):
        own = np.flatnonzero(sizes == size)
        before = general if size == 1 else smoothed[shorter[own]]
        smoothed[own] = (smoothed[own] + theta * before) / (1 + theta)
    return names, np.log(np.maximum(smoothed, 1e-12)), theta


@register(
    "hmm",
    sizes={size: {} for size in ("tiny", "small", "base", "paper")},
    paper="Brants 2000, TnT: a statistical part-of-speech tagger",
    task="tagged",
)
def hmm(spec: DataSpec, *, suffix: int = 10, rare: int = 10, beam: int = 24) -> HmmConfig:
    """Counted trigrams of tags, words by their tags, and endings for words that are new."""
    return HmmConfig(spec.n_classes, suffix, rare, beam)
