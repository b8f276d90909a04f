"""What is told of a model that was trained several times: means over all of its trainings, or which one it is of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from regard.evaluation.calibration import N_BINS
from regard.tasks.class_report import RELIABILITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.studies.row import Row


def mean(row: Row, key: str) -> float | None:
    """Of a number that is measured of each training; None where none has it."""
    found = [float(run[key]) for run in row.runs if run.get(key) is not None]
    return sum(found) / len(found) if found else None


def mean_slices(row: Row) -> dict[str, dict[str, float]]:
    """The scores by slice: of each the mean over the trainings that have it, as not every fold has every class."""
    held: dict[str, dict[str, list[float]]] = {}
    for run in row.runs:
        for name, values in run["slices"].items():
            for key, value in values.items():
                held.setdefault(name, {}).setdefault(key, []).append(value)
    return {name: {key: sum(values) / len(values) for key, values in by_key.items()} for name, by_key in held.items()}


def pooled_reliability(row: Row) -> list[tuple[float, float, int]]:
    """Confidence, share right and count of the answers of all trainings, by bins of the confidence."""
    bins: dict[int, list[tuple[float, float, int]]] = {}
    for run in row.runs:
        for sure, right, count in run.get(RELIABILITY, ()):
            bins.setdefault(math.ceil(sure * N_BINS - 1e-9), []).append((sure, right, count))
    found = []
    for _, some in sorted(bins.items()):
        total = sum(count for _, _, count in some)
        weighed = [sum(one[place] * one[2] for one in some) / total for place in (0, 1)]
        found.append((weighed[0], weighed[1], total))
    return found


def of_first(rows: Sequence[Row]) -> str:
    """What to say where only the first training of each model can be shown, such as a curve."""
    return ", first training of each" if any(len(row.runs) > 1 for row in rows) else ""
