"""Cloze: what stood between the same neighbours, counted on both sides of a gap (Taylor 1953 for the procedure).

    p(w | l, r)  = (c(l w r) + m p_0(w | l, r)) / (c(l . r) + m)
    p_0(w | l, r)  is proportional to  p(w | left) p(w | right) / p(w)

    l, r         the tokens next to the gap, left and right the N tokens on each side of it
    c(l w r)     how often w stood between l and r in the training text, c(l . r) that of any word
    p(w | left)  of an n-gram model of the text, p(w | right) of one of the text from its end to its beginning, and p(w)
                 what the first says without any context
    m            how much the sides apart count beside both together, chosen by the loss on what was held out

p_0 is Bayes' rule for sides that are independent of each other given the word. With neither side seen it is p(w).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, real_tokens
from regard.core.fitted import FitSettings, Nobody, Tell
from regard.core.registry import register
from regard.core.state import RecentTokens, State
from regard.fitting.choice import Open, choose
from regard.fitting.model import FittedConfig, FittedModel, require
from regard.fitting.spans import places_on
from regard.fitting.sparse import summed
from regard.models.ngram import NgramConfig, NgramModel

LEAST = 1e-30  # what a token that no gap can hold has
AT_ONCE = 1 << 20  # probabilities that are worked out together
BACK_OFF, BACK_OFFS = 4.0, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@runtime_checkable
class MaskedData(Protocol):
    """The training part of a task of masked text: rows whose `passages.shard.ids` are all of its tokens."""

    @property
    def rows(self) -> Any: ...


@dataclass(frozen=True)
class ClozeConfig(FittedConfig, kind="cloze"):
    """vocab_size: tokens, the end of a text and the mask last. order: N + 1.

    back_off  m; None for the one with the lowest held-out loss.
    """

    vocab_size: int
    order: int = 3
    back_off: float | None = None

    def __post_init__(self) -> None:
        check(self.vocab_size > 2, f"vocab_size must be a token, an end and a mask at least, found {self.vocab_size}")
        check(2 <= self.order <= 8, f"order must lie in 2 .. 8, found {self.order}")
        told = f"back_off must be positive and finite, found {self.back_off}"
        check(self.back_off is None or 0 < self.back_off < math.inf, told)

    def build(self) -> Cloze:
        return Cloze(self)

    def build_example(self) -> Cloze:
        """A model of a short random text: what the laws are checked on."""
        model = self.build()
        model.learn(np.random.default_rng(0).integers(self.vocab_size - 1, size=200), FitSettings(), Nobody())
        return model


@dataclass(frozen=True)
class Sides:
    """What the probabilities of words in gaps are made of, a row a gap.

    left, right (M, V)  p(w | left) and p(w | right). apart (M, V): p_0, the sides as if independent.
    row, words, counts  what stood between the same neighbours: for a gap a word, and c(l w r).
    totals (M,)         c(l . r).
    """

    left: Tensor
    right: Tensor
    apart: Tensor
    row: Tensor
    words: Tensor
    counts: Tensor
    totals: Tensor


class _Answers(nn.Module):
    """Neighbours (..., 2 N) to log p (..., V), where it is asked for."""

    def __init__(self, log_p: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.log_p = log_p

    def forward(self, neighbours: Tensor) -> Tensor:
        return self.log_p(neighbours)


class Cloze(FittedModel):
    """Between the tokens of pairs[i] = l V + r stood words first[i] .. first[i + 1] - 1, `counts` times each."""

    config: ClozeConfig
    shows_whole: ClassVar[frozenset[str]] = frozenset({"gaps"})  # its parts are drawn and explained as what they are
    pairs: Tensor
    first: Tensor
    words: Tensor
    counts: Tensor
    chosen: Tensor

    def __init__(self, config: ClozeConfig) -> None:
        super().__init__()
        self.config, self.vocab_size = config, config.vocab_size
        side = NgramConfig(config.vocab_size, config.order, eos_id=config.vocab_size - 2)
        self.before, self.behind = side.build(), side.build()
        for name in ("pairs", "first", "words", "counts"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        self.register_buffer("chosen", torch.zeros(0, dtype=torch.float64))  # m
        self.head = _Answers(self.log_p)

    def fit(self, data: MaskedData, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        return self.learn(np.asarray(data.rows.passages.shard.ids, np.int64), settings, tell)

    def learn(self, ids: np.ndarray, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        """Count a text, whose documents end with an end each."""
        size = self.vocab_size
        self.before.fit(ids, settings, Nobody())
        tell("counting", 0.3)
        self.behind.fit(np.append(ids[::-1][1:], ids[-1:]), settings, Nobody())
        tell("counting", 0.6)
        pairs, column = np.unique(ids[:-2] * np.int64(size) + ids[2:], return_inverse=True)
        order = np.argsort(column, kind="stable")
        table = summed(column[order], ids[1:-1][order], np.ones(len(order)), len(pairs), size)
        numbers = {"pairs": pairs, "first": table.starts, "words": table.columns, "counts": table.values}
        made = {name: torch.from_numpy(np.asarray(value, np.int64)) for name, value in numbers.items()}
        self.take(made | {"chosen": torch.tensor([BACK_OFF], dtype=torch.float64)})
        tell("counting", 1.0)
        asked = [Open("back_off", 0, self.config.back_off, BACK_OFFS)]
        losses = choose(self.chosen, asked, settings.judge, tell)
        m = float(self.chosen[0])
        told = f"{len(table.values):,} words between {len(pairs):,} pairs of neighbours, back-off {m:g}"
        return {"told": told, "back_off": m, "losses": losses}

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """The N tokens on each side of every place, (B, T, 2 N), those that are farthest first; -1 for none."""
        n, length = self.config.order - 1, tokens.shape[1]
        there = tokens.masked_fill(~real_tokens(context.lengths, tokens), -1)
        around = nn.functional.pad(there, (n, n), value=-1)
        left = [around[:, k : k + length] for k in range(n)]
        right = [around[:, 2 * n - k : 2 * n - k + length] for k in range(n)]
        return torch.stack(left + right, -1), None

    def encode(self, tokens: Tensor, context: Context = EMPTY) -> Tensor:
        """What the head makes answers of."""
        return self(tokens, None, context)[0]

    def log_p(self, neighbours: Tensor) -> Tensor:
        """log p (..., V) of what stands between neighbours (..., 2 N)."""
        rows = neighbours.reshape(-1, neighbours.shape[-1])
        size = max(1, AT_ONCE // self.vocab_size)
        found = [self._log_p(part).to(self.like.dtype) for part in rows.split(size)]
        return torch.cat(found).view(*neighbours.shape[:-1], self.vocab_size)

    def _log_p(self, rows: Tensor) -> Tensor:
        of, m = self.sides(rows), float(self.chosen[0])
        p = of.apart * m / (of.totals + m)[:, None]
        p = p.index_put_((of.row, of.words), of.counts / (of.totals + m)[of.row], accumulate=True)
        return p.clamp(min=LEAST).log()

    def sides(self, rows: Tensor) -> Sides:
        """What is said of gaps by their neighbours (M, 2 N)."""
        left, right = rows.chunk(2, -1)
        before, behind = _after(self.before, left), _after(self.behind, right)
        p = before * behind / self.before.table.base
        p[:, -2:] = 0
        p = p / p.sum(-1, keepdim=True).clamp(min=LEAST)
        return Sides(before, behind, p, *self._between(left[:, -1], right[:, -1]))

    def _between(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Words that stood between two tokens: row, word and count of each, and the count of all for every row."""
        asked = left * self.vocab_size + right
        if not len(self.pairs):
            nothing = torch.zeros(0, dtype=torch.long, device=left.device)
            return nothing, nothing, nothing.double(), torch.zeros(len(left), dtype=torch.float64, device=left.device)
        place = torch.searchsorted(self.pairs, asked).clamp(max=len(self.pairs) - 1)
        met = (self.pairs[place] == asked) & (left >= 0) & (right >= 0)
        sizes = torch.where(met, self.first[place + 1] - self.first[place], 0)
        row = torch.arange(len(left), device=left.device).repeat_interleave(sizes)
        entries = places_on(self.first[place], sizes)
        # An end is no word that a gap can hold.
        counts = self.counts[entries].double() * (self.words[entries] < self.vocab_size - 2)
        totals = counts.new_zeros(len(left)).index_add_(0, row, counts)
        return row, self.words[entries], counts, totals

    def settle(self) -> None:
        if self.pairs.is_meta or not len(self.first):
            return
        size = self.vocab_size
        rises = bool((self.pairs.diff() > 0).all()) and bool((self.first.diff() >= 0).all())
        require(rises and len(self.first) == len(self.pairs) + 1 and int(self.first[0]) == 0, "first")
        require(int(self.first[-1]) == len(self.words) == len(self.counts), "first")
        require(not len(self.words) or 0 <= int(self.words.min()) <= int(self.words.max()) < size, "words")
        require(bool((self.counts >= 0).all()), "words")
        require(len(self.chosen) == 1 and bool((self.chosen > 0).all()), "chosen")


def _after(model: NgramModel, tokens: Tensor) -> Tensor:
    """p (M, V) of what comes after N tokens."""
    before = nn.functional.pad(tokens[:, :-1], (1, 0), value=-1)
    state = RecentTokens(before, torch.zeros(len(tokens), dtype=torch.long, device=tokens.device))
    return model.probabilities(tokens[:, -1:], state)[:, 0]


@register(
    "cloze",
    sizes={"tiny": {"order": 2}, "small": {}, "base": {}, "paper": {}},
    paper="Taylor 1953, Cloze procedure: a new tool for measuring readability",
    task="masked",
)
def cloze(vocab_size: int, *, order: int = 3, back_off: float | None = None) -> ClozeConfig:
    """Counts of what stood between the same neighbours, on both sides of a gap."""
    return ClozeConfig(vocab_size, order, back_off)
