"""N-gram language model: what came after these few tokens before (Shannon 1948; Chen and Goodman 1998).

    p(w_t | w_1 .. w_(t-1)) = p(w_t | w_(t-n+1) .. w_(t-1))

It is fitted by counting instead of gradients and obeys the contract of every model: its state is the last n - 1
tokens, `forward` gives whole next-token distributions, and `log_probs` single probabilities without making those.
How counts become probabilities is in regard.ngram.smoothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.fitted import FitSettings, Tell
from regard.core.model import StatefulModel
from regard.core.registry import register
from regard.core.state import RecentTokens
from regard.core.workers import Workers
from regard.errors import UsageError
from regard.ngram import quick
from regard.ngram.counts import Counts, check_order, count
from regard.ngram.estimate import Estimate, notes
from regard.ngram.estimate import estimate as estimate_from
from regard.ngram.file import open_file, stored
from regard.ngram.shards import count_shards
from regard.ngram.shares import Rules
from regard.ngram.smoothing import Smoothing
from regard.ngram.spill import spill_folder
from regard.ngram.table import NgramTable, quantise


@dataclass(frozen=True)
class NgramConfig(Config, kind="ngram"):
    """order: the tokens in an n-gram. The rest is as in `regard.ngram.estimate.Rules`.

    quantise  keep eight bits of each number, for a file half as large.
    eos_id    the token that ends a sentence: the last one when not given.
    """

    fitted: ClassVar[bool] = True

    vocab_size: int
    order: int = 5
    smoothing: Smoothing = "modified_kneser_ney"
    interpolate: bool = True
    k: float = 1.0
    prune: tuple[int, ...] = ()
    closed: bool = False
    quantise: bool = False
    eos_id: int | None = None

    def __post_init__(self) -> None:
        check_order(self.order)
        check(self.vocab_size > 0, f"vocab_size must be positive, found {self.vocab_size}")
        check(0 <= self.end < self.vocab_size, f"eos_id must be one of {self.vocab_size} tokens, found {self.eos_id}")
        check(0 < self.k < math.inf, f"k must be positive and finite, found {self.k}")
        rises = all(a <= b for a, b in itertools.pairwise((0, *self.prune)))
        check(rises, f"prune must be counts from 0 on that do not fall, found {list(self.prune)}")
        check(not self.prune or self.prune[0] == 0, f"prune must begin with 0: tokens stay, found {list(self.prune)}")
        check(self.interpolate or self.smoothing != "add_k", "add_k has no back-off: it never leaves its order")

    @property
    def rules(self) -> Rules:
        return Rules(self.smoothing, self.interpolate, self.k, self.prune, self.closed)

    @property
    def end(self) -> int:
        return self.vocab_size - 1 if self.eos_id is None else self.eos_id

    def build(self) -> NgramModel:
        return NgramModel(self)

    def build_example(self) -> NgramModel:
        """A model of some random sentences: what the laws are checked on."""
        model = self.build()
        model.estimate(model.count(np.random.default_rng(0).integers(self.vocab_size, size=200)))
        return model


class NgramModel(StatefulModel):
    """An n-gram table behind the contract."""

    causal, state_grows, permutes = True, False, False
    chunk_sizes: tuple[int, ...] = ()
    max_length = None

    def __init__(self, config: NgramConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.reach = max(1, config.order - 1)
        self.table = NgramTable(config.order, config.vocab_size, config.end, config.rules)

    def count(self, ids: np.ndarray, **options: Any) -> Counts:
        """The counts of a text at this model's order; options as of `regard.ngram.counts.count`."""
        return count(ids, self.config.order, vocab_size=self.vocab_size, eos_id=self.config.end, **options)

    def fit(self, data: np.ndarray, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        """Count the ids of a text and estimate from them, in this process or by workers, with the same result."""
        with settings.labour.open(usual=1) as workers:
            found = (
                self._fit_here(data, settings, tell) if workers.is_here else self._fit_by(workers, data, settings, tell)
            )
        for note in notes(found):
            tell.note(note)
        if self.config.quantise:
            exact = settings.judge()
            self.quantise()
            rounded = settings.judge()
            tell.note(f"eight bits a number: held-out loss {exact:.6f} becomes {rounded:.6f} ({rounded - exact:+.6f})")
        return {
            "n_grams": found.n_grams,
            "kept": [len(level) for level in found.levels],
            "discounts": [[d.one, d.two, d.more] for d in found.discounts],
            "quantised": self.config.quantise,
        }

    def _fit_here(self, data: np.ndarray, settings: FitSettings, tell: Tell) -> Estimate:
        where = {"memory": settings.memory, "folder": settings.folder}
        counts = self.count(data, **where, tell=lambda share: tell("counting", share))
        return self.estimate_exactly(counts, _estimating(tell), **where)

    def _fit_by(self, workers: Workers, data: np.ndarray, settings: FitSettings, tell: Tell) -> Estimate:
        about = {"vocab_size": self.vocab_size, "eos_id": self.config.end, "memory": settings.memory}
        with spill_folder(settings.folder) as place:
            counts = count_shards(
                data, self.config.order, workers, **about, place=place, tell=lambda share: tell("counting", share)
            )
            where = {"memory": settings.memory, "folder": place, "workers": workers}
            return self.estimate_exactly(counts, _estimating(tell), **where)

    def stored(self) -> dict[str, Tensor]:
        return stored(self.table, self.config.quantise)

    def open_file(self, path: Path) -> None:
        open_file(self.table, path)

    def open_part(self, path: Path, prefix: str) -> None:
        """The same as a part of another model, of whose file its own arrays are those with `prefix`."""
        open_file(self.table, path, prefix)

    def estimate(self, counts: Counts) -> Estimate:
        """Take the probabilities that counts give, in eight bits where the config says so; forget all from before."""
        found = self.estimate_exactly(counts)
        if self.config.quantise:
            self.quantise()
        return found

    def quantise(self) -> None:
        """Keep eight bits of each number."""
        quantise(self.table)

    def estimate_exactly(
        self, counts: Counts, tell: Callable[[str, float], None] = lambda *_: None, **options: Any
    ) -> Estimate:
        """As `estimate`, without rounding; `tell` and options as of `regard.ngram.estimate.estimate`."""
        if self.config.smoothing == "given":
            raise UsageError("smoothing = given takes probabilities from an ARPA file and counts nothing")
        found = estimate_from(counts, self.config.rules, tell, **options)
        self.table.take(found)
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take the arrays as they are, of whatever length: a mapped file stays mapped."""
        inner = {key.removeprefix("table."): value for key, value in state_dict.items()}
        return self.table.load_state_dict(inner, strict, assign)

    def init_state(self, batch_size: int) -> RecentTokens:
        return RecentTokens.none(batch_size, self.config.order - 1, self.table.like.device)

    def forward(
        self, tokens: Int[Tensor, "B T"], state: RecentTokens, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T V"], RecentTokens]:
        """The logits of the token after every token: log p itself."""
        if tokens.shape[1] == 1 and len(tokens) <= quick.MOST_ROWS and tokens.device.type == "cpu":
            history = torch.cat([state.tokens, tokens], 1)
            logits = quick.log_distributions(self.table, history)
        else:
            contexts, history = self._contexts(tokens, state)
            logits = self.table.log_distributions(contexts, tokens.numel())
        return logits.unflatten(0, tokens.shape), state.after(history, context.lengths)

    def probabilities(self, tokens: Int[Tensor, "B T"], state: RecentTokens) -> Float[Tensor, "B T V"]:
        """p of every token after every token, in float64 whatever the model's number type."""
        contexts, _ = self._contexts(tokens, state)
        return self.table.distributions(contexts, tokens.numel()).unflatten(0, tokens.shape)

    def log_probs(self, tokens: Int[Tensor, "B T1"], state: RecentTokens) -> tuple[Float[Tensor, "B T"], RecentTokens]:
        """log p of every token but the first after those before it, float64, and the state before the last one.

        Each costs a search an order: no whole distribution is made.
        """
        order, width = self.config.order, self.config.order - 1
        history = torch.cat([state.tokens, tokens], 1)
        if self.config.smoothing != "add_k" and tokens.device.type == "cpu":
            p = quick.probabilities(self.table, history)[:, width + 1 :]
            return p.log(), state.after(history[:, :-1], None)
        places = self.table.places(history, order)
        contexts = [
            self.table.contexts(place, history, length)[:, width:-1].flatten()
            for length, place in enumerate(places[:-1], 1)
        ]
        found = [place[:, width + 1 :].flatten() for place in places[1:]]
        words = tokens[:, 1:]
        p = self.table.probabilities(contexts, found, words.flatten())
        return p.log().view(words.shape), state.after(history[:, :-1], None)

    def _contexts(self, tokens: Tensor, state: RecentTokens) -> tuple[list[Tensor], Tensor]:
        """Places of the last 1 .. n - 1 tokens at every token, each (B x T,), and the tokens with those before them."""
        width = self.config.order - 1
        history = torch.cat([state.tokens, tokens], 1)
        places = self.table.places(history, width)
        cut = (self.table.contexts(place, history, length) for length, place in enumerate(places, 1))
        return [place[:, width:].flatten() for place in cut], history


def _estimating(tell: Tell) -> Callable[[str, float], None]:
    return lambda part, share: tell("estimating", (share + (part == "estimating")) / 2)


@register(
    "ngram",
    sizes={"tiny": {"order": 3}, "small": {}, "base": {}, "paper": {"order": 3}},
    paper="Chen, Goodman 1998, An empirical study of smoothing techniques for language modeling",
)
def ngram(
    vocab_size: int,
    *,
    order: int = 5,
    smoothing: Smoothing = "modified_kneser_ney",
    interpolate: bool = True,
    k: float = 1.0,
    prune: tuple[int, ...] = (),
    closed: bool = False,
    quantise: bool = False,
) -> NgramConfig:
    """Counts of what came after the last few tokens, smoothed."""
    check(smoothing != "given", "smoothing = given is that of ARPA files, which hold probabilities and no counts")
    return NgramConfig(vocab_size, order, smoothing, interpolate, k, prune, closed, quantise)
