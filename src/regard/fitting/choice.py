"""Choosing numbers by the loss on what was held out, where no formula gives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from regard.core.fitted import Tell


class Open(NamedTuple):
    """A number that may be chosen. place: where it stands. given: what the config says. values: tried where that is
    None.
    """

    name: str
    place: int
    given: float | None
    values: Sequence[float]


def choose(
    chosen: Tensor, asked: Sequence[Open], judge: Callable[[], float], tell: Tell
) -> dict[str, dict[str, float]]:
    """Set the numbers of `chosen` (n,), which are at their defaults, one after the other; every loss that was tried.

    judge  the held-out loss with the numbers as they stand; NaN where there is none, and then the default stays.
    """
    losses: dict[str, dict[str, float]] = {}
    for number, (name, place, given, values) in enumerate(asked, 1):
        if given is None:
            losses[name] = _lowest(chosen, place, values, judge)
        else:
            chosen[place] = given
        tell("choosing", number / len(asked))
    return losses


def _lowest(chosen: Tensor, place: int, values: Sequence[float], judge: Callable[[], float]) -> dict[str, float]:
    losses: dict[str, float] = {}
    best = math.inf, float(chosen[place])
    for value in values:
        chosen[place] = value
        loss = judge()
        if math.isfinite(loss):
            losses[f"{value:g}"] = loss
            best = min(best, (loss, value))
        elif math.isnan(loss):
            break
    chosen[place] = best[1]
    return losses
