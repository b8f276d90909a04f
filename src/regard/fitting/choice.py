"""Choosing a number by the loss on what was held out, where no formula gives it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def lowest(
    values: Sequence[float], set_to: Callable[[float], None], judge: Callable[[], float], default: float
) -> tuple[float, dict[str, float]]:
    """The value with the lowest loss, which is set in the end, and every loss; the default where there is no loss."""
    losses: dict[str, float] = {}
    best = math.inf, default
    for value in values:
        set_to(value)
        loss = judge()
        if math.isfinite(loss):
            losses[f"{value:g}"] = loss
            best = min(best, (loss, value))
        elif math.isnan(loss):
            break
    set_to(best[1])
    return best[1], losses
