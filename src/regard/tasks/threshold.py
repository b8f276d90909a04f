"""Threshold: the chance above which a label of several is told, found on what was held out and kept with the run.

The temperature that makes chances true is found with it: each label of each text is a question of yes and no.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.evaluation.multilabel import best_threshold
from regard.tasks.calibration import calibration, not_all, refuse_temperature, saved_facts
from regard.terminal.label import too_few

FEWEST = 20  # held-out labels by which a threshold is found
HALF = 0.5


@dataclass(frozen=True)
class Threshold:
    """value: the threshold. before, after: micro F1 on `examples` with a half, and with it. told: why it is a half.

    temperature  of the chances. error_before, error_after: their expected calibration error without and with it.
    """

    value: float = HALF
    before: float = 0.0
    after: float = 0.0
    examples: int = 0
    told: str = ""
    temperature: float = 1.0
    error_before: float = 0.0
    error_after: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:
            raise UsageError(f"value: found {self.value}, which is no chance")
        refuse_temperature(self.temperature)

    @property
    def line(self) -> str:
        """For people."""
        if self.told or not self.examples:
            return "labels: told where their chance is above 0.5" + (f", {self.told}" if self.told else "")
        f1 = f"micro F1 {self.before:.3f} -> {self.after:.3f}"
        line = f"labels: told where their chance is above {self.value:.2f}, {f1} on {self.examples:,} held-out examples"
        error = f"expected calibration error {self.error_before:.3f} -> {self.error_after:.3f}"
        return line + (f"; temperature {self.temperature:.2f}, {error}" if self.temperature != 1 else "")

    def to_file(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def threshold(logits: np.ndarray, hits: np.ndarray, held_out: int | None = None) -> Threshold:
    """The one for held-out logits (n, L) and the labels that hold (n, L). held_out: as in `calibration`."""
    n, true = len(hits), int(hits.sum())
    if true < FEWEST:
        few = f"{too_few(true, 'held-out label')} to find another"
        return Threshold(examples=n, told=few + not_all(n, held_out, f"{hits.shape[1]:,} labels"))
    # Of two classes with the logits 0 and z the chance of the second is that of the label.
    found = calibration(np.stack([np.zeros(logits.size), logits.ravel()], 1), hits.ravel().astype(np.int64))
    chances = 1 / (1 + np.exp(-logits / found.temperature))
    told = chances > HALF
    both = int(told.sum()) + true
    value, after = best_threshold(chances, hits)
    f1 = 2 * int((told & hits).sum()) / both
    return Threshold(
        value, f1, after, n, temperature=found.temperature, error_before=found.before, error_after=found.after
    )


def saved_threshold(verified: Callable[[str], Path]) -> Threshold:
    """That of a run folder, whose files `verified` gives; a half where it has none."""
    hints: dict[str, Any] = {"value": float, "before": float, "after": float, "examples": int, "told": str}
    later: dict[str, Any] = dict.fromkeys(("temperature", "error_before", "error_after"), float)
    found = saved_facts(verified, hints, Threshold, later)
    return Threshold() if found is None else found
