"""What a single row asks for beside settings: a rule on its logits, and the likeliest tokens at every place.

A rule changes what a token is drawn from and nothing else: every log-probability that is told is the model's own.
Rules look at what was drawn before, so that a row with one is looked at after every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.drawing import next_tokens
from regard.decoding.logits_processing import Kind, RowSettings, fine, raw_log_probs

if TYPE_CHECKING:
    from regard.decoding.row import Row

Likeliest = tuple[tuple[int, float], ...]


class Rule(Protocol):
    """Logits of a row (V,) as they are to be drawn from, after the tokens that were drawn so far. A new tensor."""

    def __call__(self, logits: Float[Tensor, "V"], drawn: Sequence[int]) -> Float[Tensor, "V"]: ...


@dataclass(frozen=True)
class RowRules:
    """each: applied one after the other. likeliest: how many of the likeliest tokens are told at every place."""

    each: tuple[Rule, ...] = ()
    likeliest: int = 0

    def __bool__(self) -> bool:
        return bool(self.each) or self.likeliest > 0


NO_RULES = RowRules()


@dataclass(frozen=True)
class LogitBias:
    """Numbers that are added to the logits of some tokens."""

    bias: Mapping[int, float]

    def __call__(self, logits: Tensor, drawn: Sequence[int]) -> Tensor:
        places = torch.tensor(list(self.bias), device=logits.device)
        added = torch.tensor(list(self.bias.values()), dtype=logits.dtype, device=logits.device)
        return logits.index_add(0, places, added)


@dataclass(frozen=True)
class RepetitionPenalty:
    """Less for what was drawn before: `presence` once it was, `frequency` for every time.

    logits_w - frequency * count_w - presence * [count_w > 0]
    """

    presence: float = 0.0
    frequency: float = 0.0

    def __call__(self, logits: Tensor, drawn: Sequence[int]) -> Tensor:
        if not drawn:
            return logits
        counts = torch.bincount(torch.tensor(drawn, device=logits.device), minlength=logits.shape[0]).to(logits.dtype)
        return logits - self.frequency * counts - self.presence * (counts > 0)


def have_rules(rows: Sequence[Row | None]) -> bool:
    """Whether some row has rules, or asks for more than its tokens."""
    return any(row is not None and bool(row.rules) for row in rows)


def draw_rows(
    logits: Float[Tensor, "B V"],
    rows: Sequence[Row | None],
    settings: RowSettings,
    uniform: Float[Tensor, "B"] | None,
    kind: Kind,
) -> tuple[Int[Tensor, "B"], Float[Tensor, "B"]]:
    """A token for each row and its raw log-probability; each row's rules obeyed, and its likeliest tokens noted."""
    tokens, log_probs = next_tokens(logits, settings, uniform, kind)
    if not have_rules(rows):
        return tokens, log_probs
    ruled, raw = fine(logits).clone(), raw_log_probs(logits)
    has_rules = torch.zeros(len(rows), dtype=torch.bool)
    for place, row in enumerate(rows):
        if row is None:
            continue
        for rule in row.rules.each:
            has_rules[place] = True
            ruled[place] = rule(ruled[place], row.written)
        if row.rules.likeliest:
            row.likeliest = _likeliest(raw[place], row.rules.likeliest)
    # What stands beside a row with rules is drawn as it always is, to the bit.
    by_rule, has_rules = next_tokens(ruled, settings, uniform, kind)[0], has_rules.to(logits.device)
    told = raw.gather(-1, by_rule[:, None])[:, 0].to(log_probs.dtype)
    return torch.where(has_rules, by_rule, tokens), torch.where(has_rules, told, log_probs)


def _likeliest(log_probs: Tensor, count: int) -> Likeliest:
    found = log_probs.topk(min(count, log_probs.shape[0]))
    return tuple(zip(found.indices.tolist(), found.values.tolist(), strict=True))
