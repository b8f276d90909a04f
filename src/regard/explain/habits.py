"""Habits: what a head of attention does on random tokens that come twice, where there is nothing to read but that.

    <s> r_1 .. r_n r_1 .. r_n          i a position of the second half

    induction       a_(i, i-n+1)   the token after the last time it read the same one (Olsson et al. 2022)
    previous token  a_(i, i-1)
    next token      a_(i, i+1)     of models that look both ways
    same token      a_(i, i-n)     the last time it read the same one
    first token     a_(i, 1)       a sink: where a head looks for want of anything else (Xiao et al. 2024)

Means over positions. A head is called by that habit which has most of its weight, where it has at least 0.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.tap import plain, record, resting
from regard.explain.inputs import positions_of
from regard.explain.site import Site
from regard.tasks.reading import Capabilities, Reading

LENGTH, FEWEST = 48, 4
ENOUGH = 0.4
HABITS = ("induction", "previous token", "next token", "same token", "first token")


@dataclass(frozen=True)
class Repeated:
    """Tokens (1, T), how many stand before the first half, and how long a half is."""

    tokens: Tensor
    before: int
    half: int

    @property
    def second(self) -> np.ndarray:
        """The positions of the second half."""
        return np.arange(self.before + self.half, self.before + 2 * self.half)


def reads_repeated(can: Capabilities) -> bool:
    """Whether any tokens make a text that it can be asked about."""
    return can.tokens and (can.next or can.mask) and not can.source


def repeated(reading: Reading, seed: int = 0) -> Repeated | None:
    """Random tokens twice, in the frame that a text has; None where the model has no room or no tokens for it."""
    run, can = reading.owner, reading.can
    if not reads_repeated(can):
        return None
    tokenizer = run.processor.tokenizer
    frame = run.task.ids(run.processor, "").tolist()
    usable = [token for token in range(tokenizer.vocab_size) if not tokenizer.is_special(token)]
    usable = [token for token in usable if token != tokenizer.unknown_id]
    room = positions_of(run)
    half = min(LENGTH, len(usable), LENGTH if room is None else (room - len(frame)) // 2)
    if half < FEWEST:
        return None
    drawn = np.random.default_rng(seed).choice(usable, half, replace=False).tolist()
    tokens = torch.tensor([[*frame[:1], *drawn, *drawn, *frame[1:]]], device=reading.inputs[0].device)
    return Repeated(tokens, len(frame[:1]), half)


@torch.no_grad()
def habits(reading: Reading, found: Sequence[Site], given: Repeated) -> list[np.ndarray]:
    """The share of each of HABITS in the weights of each head, (H, 5), of every site."""
    model: Any = plain(reading.model)
    with resting(model), ExitStack() as stack:
        kept = [
            stack.enter_context(record(model, site.tap("attention"), partial(_measured, site, given))) for site in found
        ]
        model(given.tokens)
    return [next(iter(seen.values()))[-1] for seen in kept]


def _measured(site: Site, given: Repeated, weights: Tensor) -> np.ndarray:
    return measured((weights[0].flip(1, 2) if site.backward else weights[0]).float().cpu().numpy(), given)


def measured(weights: np.ndarray, given: Repeated) -> np.ndarray:
    """The share of each of HABITS in weights (H, T, T): (H, 5)."""
    second = given.second
    inner = second[:-1]  # the last may have nothing after it
    each = [
        weights[:, second, second - given.half + 1],
        weights[:, second, second - 1],
        weights[:, inner, inner + 1],
        weights[:, second, second - given.half],
        weights[:, second, 0],
    ]
    return np.stack([part.mean(1) for part in each], 1)


def named(shares: np.ndarray) -> str:
    """What a head is called by its habits (5,); empty where none has enough of its weight."""
    best = int(shares.argmax())
    return HABITS[best] if shares[best] >= ENOUGH else ""


def habit_names(reading: Reading, found: Sequence[Site]) -> list[list[str]]:
    """What the heads of each site are called, or "none"; nothing where a model cannot be tried."""
    given = repeated(reading)
    if given is None:
        return []
    return [[named(head) or "none" for head in shares] for shares in habits(reading, found, given)]
