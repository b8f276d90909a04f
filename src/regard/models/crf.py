"""A linear-chain conditional random field: weights for what there is to see at a word, and for tags beside each other.

    score(y | x) = start_(y_1) + sum_t sum_(f at t) u_f,(y_t) + sum_t A_(y_(t-1)),(y_t) + end_(y_T)
    p(y | x)     = exp score(y | x) / sum_y' exp score(y' | x)

    f    the features at word t: the word, its form, its neighbours, see regard/fitting/word_features.py
    u    a weight for each feature and tag
    A    a weight for each tag, the row, before each

Fitted to the largest likelihood with a penalty on squares, by L-BFGS: the one minimum of a convex function. Lafferty,
McCallum, Pereira 2001; for named entities and parts of speech McCallum, Li 2003.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain as chained
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.registry import register
from regard.errors import DataError
from regard.fitting.crf import Likelihood, emissions_of, kept
from regard.fitting.evidence import Evidence
from regard.fitting.grams import Vocabulary
from regard.fitting.lbfgs import Lowest, minimise
from regard.fitting.model import require, require_room
from regard.fitting.spans import places_on
from regard.fitting.word_features import Met, Table, clipped, sentences_of, tables
from regard.layers.crf import Chain, log_chances, score_ways, viterbi
from regard.models.word_tagger import WordTagger, WordTaggerConfig, given_to

OUTSIDE = "O"
PairsName = Literal["seen", "all"]


@dataclass(frozen=True)
class CrfConfig(WordTaggerConfig, kind="crf"):
    """strength: of the penalty on squares.

    pairs       features and tags that have a weight: those that were seen together, or all.
    min_words   words that must have a feature for it to be kept. min_pairs: the same of pairs of words.
    outside     taken from the score of the tag O: more and less certain spans are found.
    tolerance   by how much of itself the likelihood still grows in ten steps at the end. max_steps: at most so many.
    """

    strength: float = 0.1
    pairs: PairsName = "seen"
    min_words: int = 1
    min_pairs: int = 2
    outside: float = 0.0
    tolerance: float = 1e-3
    max_steps: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.strength > 0, f"strength must be positive, found {self.strength}")
        check(min(self.min_words, self.min_pairs) >= 1, "min_words and min_pairs must be 1 or more")
        check(abs(self.outside) < 100, f"outside must lie between -100 and 100, found {self.outside}")
        check(0 < self.tolerance < 1, f"tolerance must lie between 0 and 1, found {self.tolerance}")
        check(self.max_steps > 0, f"max_steps must be positive, found {self.max_steps}")

    def build(self) -> Crf:
        return Crf(self)


class Crf(WordTagger):
    """The weights of features, sparse: those of feature f stand at starts_f .. starts_(f+1)."""

    config: CrfConfig
    features: Tensor
    words: Tensor
    word_counts: Tensor
    starts: Tensor
    tags: Tensor
    weights: Tensor
    offsets: Tensor
    between: Tensor
    start: Tensor
    end: Tensor

    def __init__(self, config: CrfConfig) -> None:
        super().__init__(config)
        for name in ("features", "words"):  # text in UTF-8, a line each
            self.register_buffer(name, torch.zeros(0, dtype=torch.uint8))
        for name in ("word_counts", "starts", "tags"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        for name in ("weights", "offsets", "start", "end"):
            self.register_buffer(name, torch.zeros(0))
        self.register_buffer("between", torch.zeros(0, 0))
        self._vocabulary, self._met, self._read_from = Vocabulary(), Met({}), self.features

    def fit(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        config = self.config
        sentences, tags, sizes = given_to(data)
        counts = Counter(chained.from_iterable(sentences))
        vocabulary = Vocabulary()
        tell("looking", 0.0)
        found = tables(sentences_of(sentences), Met(counts, own=1), vocabulary.added, lambda: len(vocabulary))
        found, columns = kept(found, config.min_words, config.min_pairs)
        vocabulary = vocabulary.kept(columns)
        tell("looking", 1.0)
        advice = "raise model.min_words and model.min_pairs, or take most_frequent"
        require_room(len(vocabulary), "features", config.n_classes, "tags", advice)
        function = Likelihood(found, tags, sizes, config.n_classes, config.strength, config.pairs == "seen")
        lowest = minimise(
            function, function.zero(), config.tolerance, config.max_steps, lambda share: tell("solving", share)
        )
        self._keep(vocabulary, counts, function, lowest.x, _outside(data, config))
        if not lowest.converged:
            tell.note(_not_there(lowest, config))
        return {
            "told": f"{len(vocabulary):,} features, {config.n_classes:,} tags, {lowest.steps} steps",
            "steps": lowest.steps,
            "calls": lowest.calls,
            "value": lowest.value,
            "gradient": lowest.gradient,
            "fallen": lowest.fallen,
            "converged": lowest.converged,
        }

    def emissions(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        return self._summed(self._tables(sentences)) + self.offsets.double()

    def decode(self, vectors: Tensor, lengths: Tensor, allowed: Chain | None = None) -> Tensor:
        chain = self.chain().to(vectors)
        return viterbi(vectors, lengths, chain if allowed is None else chain + allowed.to(vectors))

    def log_chances(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        return log_chances(vectors, lengths, self.chain().to(vectors))

    def score_ways(self, vectors: Tensor, ways: Tensor) -> Tensor:
        return score_ways(vectors, ways, self.chain().to(vectors))

    def chain(self) -> Chain:
        return Chain(self.between, self.start, self.end)

    def evidence(self, words: Sequence[str], place: int) -> Evidence:
        """What the features at one word of a sentence say for each tag, neighbours' tags apart."""
        columns = np.concatenate(
            [
                table.rows.columns[table.rows.starts[row] : table.rows.starts[row + 1]]
                for table in self._tables([[clipped(word) for word in words]])
                for row in [table.index[place]]
            ]
        )
        names = [self._vocabulary.names[column] for column in columns]
        weights = self._unary(columns).double().cpu().numpy()
        return Evidence(names, np.ones(len(names)), weights, self.offsets.double().cpu().numpy())

    def settle(self) -> None:
        if self.features.is_meta or self.features is self._read_from:
            return
        self._read_from, n_tags = self.features, self.config.n_classes
        self._vocabulary = Vocabulary.unpacked(self.features.cpu().numpy())
        words = Vocabulary.unpacked(self.words.cpu().numpy()).names
        require(len(words) == len(self.word_counts), "the number of words")
        self._met = Met(dict(zip(words, self.word_counts.tolist(), strict=True)))
        starts, pairs = self.starts, len(self.tags)
        require(len(starts) == len(self._vocabulary) + 1 and len(self.weights) == pairs, "the number of weights")
        require(int(starts[0]) == 0 and int(starts[-1]) == pairs, "where the weights of a feature begin")
        require(bool((starts.diff() >= 0).all()), "where the weights of a feature begin")
        require(not pairs or 0 <= int(self.tags.min()) <= int(self.tags.max()) < n_tags, "a tag")
        own = (len(self.offsets), len(self.start), len(self.end), *self.between.shape)
        require(own == (n_tags,) * 5, "the number of tags")

    def _keep(
        self, vocabulary: Vocabulary, counts: Counter[str], function: Likelihood, x: Tensor, offsets: Tensor
    ) -> None:
        """Take what was found for the model's own."""
        rows, tags = (function.pairs // self.config.n_classes), function.pairs % self.config.n_classes
        found = function.weights(x)
        ends = torch.bincount(rows, minlength=len(vocabulary)).cumsum(0)
        self.take(
            {
                "words": torch.from_numpy(Vocabulary(list(counts)).packed()),
                "word_counts": torch.tensor(list(counts.values()), dtype=torch.int64),
                "starts": torch.cat([torch.zeros(1, dtype=torch.int64), ends]),
                "tags": tags,
                "weights": x[: len(tags)].float(),
                "offsets": offsets,
                "between": found.between.float().clone(),
                "start": found.start.float().clone(),
                "end": found.end.float().clone(),
                "features": torch.from_numpy(vocabulary.packed()),
            }
        )

    def _tables(self, sentences: Sequence[Sequence[str]]) -> list[Table]:
        return tables(sentences_of(sentences), self._met, self._vocabulary.found, lambda: 0)

    def _summed(self, found: Sequence[Table]) -> Tensor:
        """The weights of all features of each word, (N, C) float64; of many features few are asked for."""
        columns, places = np.unique(np.concatenate([table.rows.columns for table in found]), return_inverse=True)
        firsts = np.cumsum([0, *(len(table.rows.columns) for table in found)])
        numbered = [
            table.with_columns(places[first:last], len(columns))
            for table, first, last in zip(found, firsts, firsts[1:], strict=False)
        ]
        return emissions_of(numbered, self._unary(columns).double())

    def _unary(self, columns: np.ndarray) -> Tensor:
        """u of some features, (n, C)."""
        rows = torch.from_numpy(columns).to(self.starts.device)
        first, sizes = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        row_of = torch.arange(len(rows), device=rows.device).repeat_interleave(sizes)
        places = places_on(first, sizes)
        found = torch.zeros(len(rows), self.config.n_classes, device=rows.device)
        found[row_of, self.tags[places]] = self.weights[places]
        return found


def _outside(data: GivenExamples, config: CrfConfig) -> Tensor:
    """What is added to the score of each tag: nothing, or less for O."""
    found = torch.zeros(config.n_classes)
    if config.outside:
        tags = (tag for one in data.column("tags") for tag in one)
        number = next((n for tag, n in zip(tags, data.rows.tags.values, strict=True) if tag == OUTSIDE), None)
        if number is None:
            raise DataError(f"model.outside: there is no tag {OUTSIDE} in the training part; leave it out")
        found[int(number)] = -config.outside
    return found


def _not_there(lowest: Lowest, config: CrfConfig) -> str:
    return (
        f"the solver did not converge: in the last of {lowest.steps} steps the likelihood still changed by "
        f"{lowest.fallen:.1e} of itself, and {config.tolerance:.1e} was asked for; raise model.max_steps or "
        f"model.strength"
    )


@register(
    "crf",
    sizes={"tiny": {"max_steps": 100}, "small": {}, "base": {}, "paper": {"pairs": "all"}},
    paper="Lafferty, McCallum, Pereira 2001, Conditional random fields",
    task="tagged",
)
def crf(
    spec: DataSpec,
    *,
    strength: float = 0.1,
    pairs: PairsName = "seen",
    min_words: int = 1,
    min_pairs: int = 2,
    outside: float = 0.0,
    tolerance: float = 1e-3,
    max_steps: int = 300,
) -> CrfConfig:
    """Weighted features of words and of tags beside each other, fitted exactly."""
    return CrfConfig(spec.n_classes, strength, pairs, min_words, min_pairs, outside, tolerance, max_steps)
