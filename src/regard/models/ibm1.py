"""IBM Model 1 with a language model: the first soft alignment (Brown, Della Pietra, Della Pietra, Mercer 1993).

The lexicon t(y | x) is fitted by expectation and maximisation (regard/fitting/lexicon.py); the end of the source is
Brown's empty word, to which words without a source belong. A text is written from left to right:

    a_i(j)  = t(y_i | x_j) / sum_k t(y_i | x_k)               where word i came from: the alignment that is shown
    u(j)    = max(0, phi(x_j) - sum_(i <= t) a_i(j))          what x_j has left to say: its fertility less what it said
    r       = sum_j u(j)                                      how many words are left to be said, about
    d(j)    = exp(-k |t / m - j / l|)                         words come in the order of their sources
    q(w)    = (1 - exp(-r)) sum_j u(j) d(j) t(w | x_j) / z    and q(end) = exp(-r): none is left, by Poisson's law
    p(w | y_1 .. y_t, x) is proportional to  l(w)^a ((1 - e) q(w) + e l(w | not the end))

    l       p(w | y_1 .. y_t) of an n-gram model of the target side (regard/models/ngram.py)
    m, z    sum_j phi(x_j), the words that are expected in all; the sum of u(j) d(j)
    a, k    how much the language model and the order of the source count, chosen by the loss on what was held out

A word that is said takes its share from the sources that may have said it, so that each is told once. Of the order of
the source Brown's first model knows nothing, k = 0; the diagonal is that of Dyer, Chahuneau and Smith 2013, and serves
writing alone: neither the lexicon nor the alignment that is shown knows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.context import Context, real_tokens
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Nobody, Tell
from regard.core.registry import register
from regard.core.state import State
from regard.core.tap import Tap
from regard.fitting.choice import Open, choose
from regard.fitting.lexicon import Texts, expectation_maximisation
from regard.fitting.model import FittedConfig, require
from regard.fitting.translations import LEAST, Translations
from regard.models.fitted_writer import ExamplePairs, FittedWriter, PairData
from regard.models.ibm1_state import Told
from regard.models.ngram import NgramConfig
from regard.models.seq2seq import source_vocabulary

AT_ONCE = 1 << 18  # probabilities that are worked out together, so that they stay near
LANGUAGES, DIAGONALS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8), (0.0, 2.0, 4.0, 8.0, 12.0)
LANGUAGE, DIAGONAL = 0.5, 4.0


@dataclass(frozen=True)
class Ibm1Config(FittedConfig, kind="ibm1"):
    """order: of the language model. iterations: of the fit. prune: t(y | x) below it are not kept.

    share               e, the part of the words that is the language model's own.
    language, diagonal  a and k; None for the one with the lowest held-out loss.
    """

    vocab_size: int
    source_vocab_size: int
    order: int = 4
    iterations: int = 5
    prune: float = 1e-5
    share: float = 0.02
    language: float | None = None
    diagonal: float | None = None

    def __post_init__(self) -> None:
        check(self.vocab_size > 0, f"vocab_size must be positive, found {self.vocab_size}")
        check(self.source_vocab_size > 0, f"source_vocab_size must be positive, found {self.source_vocab_size}")
        check(self.iterations >= 1, f"iterations must be 1 or more, found {self.iterations}")
        check(0 <= self.prune < 1, f"prune must be a probability below 1, found {self.prune}")
        check(0 < self.share < 1, f"share must lie between 0 and 1, found {self.share}")
        for name in ("language", "diagonal"):
            value = getattr(self, name)
            check(value is None or 0 <= value < math.inf, f"{name} must be 0 or more, found {value}")
        NgramConfig(self.vocab_size, self.order)

    def build(self) -> Ibm1:
        return Ibm1(self)

    def example(self) -> ExamplePairs:
        chance = np.random.default_rng(0)

        def texts(size: int, end: int | None) -> Texts:
            rows = [np.append(chance.integers(size - 1, size=4), [] if end is None else [end]) for _ in range(9)]
            return Texts(np.concatenate(rows).astype(np.int64), np.arange(10) * len(rows[0]))

        source = texts(self.source_vocab_size, self.source_vocab_size - 1)
        return ExamplePairs(source, texts(self.vocab_size, None))


class Ibm1(FittedWriter):
    """The lexicon in the terms of `Translations`, fertility phi (n_source,), and chosen (2,): a and k."""

    shows: ClassVar[dict[str, str]] = {"weights": "alignment"}
    looks_at_source = True
    first: Tensor
    words: Tensor
    t: Tensor
    fertility: Tensor
    chosen: Tensor

    def __init__(self, config: Ibm1Config) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.language = NgramConfig(config.vocab_size, config.order).build()
        self.weights = Tap(axis=2)
        for name in ("first", "words"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        for name in ("t", "fertility", "chosen"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))
        self.settle()

    @property
    def d_memory(self) -> int:
        return 1

    def fit(self, data: PairData, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        sides = data.rows.source, data.rows.target
        source, target = (Texts(side.values, side.starts) for side in sides)
        return self.learn(source, target, settings, tell)

    def learn(self, source: Texts, target: Texts, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        """The lexicon of pairs of texts, sources with their end and targets without, and the rest of the model."""
        config = self.config
        sizes = config.source_vocab_size, config.vocab_size, config.iterations, settings.memory
        found = expectation_maximisation(source, target, *sizes, lambda share: tell("aligning", share))
        kept = found.pruned(config.prune)
        self.language.fit(_end_to_end(target, config.vocab_size - 1), settings, Nobody())
        numbers = {"first": kept.first, "words": kept.words, "t": kept.t, "fertility": kept.fertility}
        made = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in numbers.items()}
        self.take(made | {"chosen": torch.tensor([LANGUAGE, DIAGONAL], dtype=torch.float64)})
        asked = (
            Open("diagonal", 1, config.diagonal, DIAGONALS),
            Open("language", 0, config.language, LANGUAGES),
        )
        losses = choose(self.chosen, asked, settings.judge, tell)
        a, k = self.chosen.tolist()
        return {
            "told": f"{len(kept.t):,} translations by {config.iterations} steps of EM, language {a:g}, diagonal {k:g}",
            "log_likelihood": list(found.log_likelihood),
            "language": a,
            "diagonal": k,
            "losses": losses,
        }

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The ids themselves, (B, S, 1)."""
        return source[..., None].long(), lengths

    def begin(self, memory: Tensor, lengths: Tensor | None) -> Told:
        source = memory[..., 0].long()
        source = source.masked_fill(~real_tokens(lengths, source), -1)
        said = torch.zeros(source.shape, dtype=torch.float64, device=source.device)
        return Told(source, said, self.language.init_state(len(source)))

    def write(self, tokens: Tensor, state: State, context: Context) -> tuple[Tensor, Told]:
        assert isinstance(state, Told)
        # The end, which a text begins with too, is said by nothing.
        is_word = real_tokens(context.lengths, tokens) & (tokens != self.vocab_size - 1)
        came = self._translations.posterior(tokens, state.source) * is_word[..., None]  # a, (B, T, S)
        said = state.said[:, None] + came.cumsum(1)
        language = self.language.probabilities(tokens, state.language)
        history = torch.cat([state.language.tokens, tokens], 1)
        after = Told(state.source, state.said + came.sum(1), state.language.after(history, context.lengths))
        rows = max(1, AT_ONCE // max(1, tokens.shape[1] * self.vocab_size))
        parts = zip(state.source.split(rows), said.split(rows), language.split(rows), strict=True)
        log_p = torch.cat([self._log_p(*part).to(self.like.dtype) for part in parts])
        if self.weights.recorded:
            self.weights(self._shown(tokens, state.source, log_p)[:, None].to(self.like.dtype))
        return log_p, after

    def alignment(self, tokens: Tensor, state: State, *, written: Tensor | None = None) -> Tensor | None:
        assert isinstance(state, Told)
        return None if written is None else self._translations.posterior(written, state.source)

    def _log_p(self, source: Tensor, said: Tensor, language: Tensor) -> Tensor:
        """log p (B, T, V) of what follows when `said` (B, T, S) was said by each source."""
        fertility = torch.where(source >= 0, self.fertility[source.clamp(min=0)], 0.0)
        left = (fertility[:, None] - said).clamp(min=0)  # u
        rest = left.sum(-1, keepdim=True)  # r
        left = left * self._near(source, said, fertility.sum(-1))
        scale = -torch.expm1(-rest) / left.sum(-1, keepdim=True).clamp(min=LEAST)
        q = self._translations.expected(source, left * scale)
        q[..., -1:] += (-rest).exp()
        words = language / (1 - language[..., -1:]).clamp(min=LEAST)
        words[..., -1] = 0
        share, a = self.config.share, float(self.chosen[0])
        mixed = q.mul_(1 - share).add_(words, alpha=share).clamp_(min=LEAST).log_()
        return mixed.add_(language.clamp(min=LEAST).log_(), alpha=a).log_softmax(-1)

    def _near(self, source: Tensor, said: Tensor, expected: Tensor) -> Tensor:
        """d, (B, T, S): how near each place is to where the text has come."""
        came = said.sum(-1) / expected[:, None].clamp(min=LEAST)  # t / m
        length = (source >= 0).sum(-1, keepdim=True).clamp(min=1)
        place = torch.arange(source.shape[1], device=source.device) / length.double()  # j / l
        return torch.exp(-float(self.chosen[1]) * (came[..., None] - place[:, None]).abs())

    def _shown(self, tokens: Tensor, source: Tensor, log_p: Tensor) -> Tensor:
        """Where the token after each comes from, (B, T, S): of the last, which is not there yet, what is expected."""
        if not tokens.shape[1]:
            return torch.zeros(*tokens.shape, source.shape[1], device=source.device)
        every = torch.arange(self.vocab_size, device=source.device).expand(len(source), -1)
        expected = log_p[:, -1:].double().softmax(-1) @ self._translations.posterior(every, source)
        return torch.cat([self._translations.posterior(tokens[:, 1:], source), expected], 1)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        super()._apply(fn, recurse)
        self.settle()  # of the numbers where they are now
        return self

    def settle(self) -> None:
        self._translations = Translations(self.first, self.words, self.t, self.vocab_size)
        if self.first.is_meta or not len(self.first):
            return
        n = self.config.source_vocab_size
        require(len(self.first) == n + 1 and len(self.fertility) == n and len(self.chosen) == 2, "the number of words")
        rises = int(self.first[0]) == 0 and bool((self.first.diff() >= 0).all())
        require(rises and int(self.first[-1]) == len(self.words) == len(self.t), "first")
        inside = not len(self.words) or 0 <= int(self.words.min()) <= int(self.words.max()) < self.vocab_size
        require(inside and bool((self._translations.keys.diff() > 0).all()), "words")
        require(all(bool((part >= 0).all()) for part in (self.t, self.fertility, self.chosen)), "t")


def _end_to_end(texts: Texts, end: int) -> np.ndarray:
    """The words of all texts with an end after each."""
    sizes = np.diff(texts.starts)
    found = np.full(len(texts.values) + len(sizes), end, np.int64)
    found[np.arange(len(texts.values)) + np.repeat(np.arange(len(sizes)), sizes)] = texts.values
    return found


@register(
    "ibm1",
    sizes={"tiny": {"order": 2}, "small": {}, "base": {}, "paper": {"order": 3, "diagonal": 0.0}},
    paper="Brown, Della Pietra, Della Pietra, Mercer 1993, The mathematics of statistical machine translation",
    task="pairs",
)
def ibm1(
    spec: DataSpec,
    *,
    order: int = 4,
    iterations: int = 5,
    prune: float = 1e-5,
    share: float = 0.02,
    language: float | None = None,
    diagonal: float | None = None,
) -> Ibm1Config:
    """A dictionary found by soft alignment, and a language model that puts its words in order."""
    sizes = spec.vocab_size, source_vocabulary(spec, False)
    return Ibm1Config(*sizes, order, iterations, prune, share, language, diagonal)
