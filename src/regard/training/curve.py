"""The learning curve of a run: what was measured on held-out data while it trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from regard.training import metrics
from regard.training.run_folder import METRICS

CURVE = 200

P = TypeVar("P")


def curve(path: Path) -> list[dict[str, float]]:
    """Held-out loss and score by time, step and tokens, thinned where there are very many."""
    return thinned(evaluations(path))


def evaluations(path: Path) -> list[dict[str, float]]:
    """Every evaluation of a training: held-out loss and score by time, step and tokens."""
    tokens, points = 0.0, []
    for record in metrics.read(path / METRICS):
        tokens = record.get("tokens", tokens)
        if "valid_loss" in record:
            kept = {name: value for name, value in record.items() if name.startswith("valid_")}
            points.append({"step": record["step"], "seconds": record.get("seconds", 0.0), "tokens": tokens} | kept)
    return points


def thinned(points: Sequence[P], most: int = CURVE) -> list[P]:
    """At most so many points, evenly apart, the first and the last among them.

    >>> thinned(range(9), 4)
    [0, 3, 6, 8]
    """
    every = max(1, math.ceil((len(points) - 1) / (most - 1)))
    return [*points[:-1:every], *points[-1:]]
