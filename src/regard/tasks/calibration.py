"""Calibration: the temperature that makes a run's chances of classes true, found once its weights are.

It lies in a file of its own in the run folder, which the manifest checks like every other. A training that goes on
takes it out of the manifest, since it belongs to the weights as they were.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regard.core.config import decode
from regard.errors import UsageError, blamed_on
from regard.evaluation.calibration import (
    HIGHEST,
    LOWEST,
    best_temperature,
    calibration_error,
    log_loss,
    reliability,
    tempered,
)
from regard.storage.manifest import read_json
from regard.tasks.processor import PROCESSOR
from regard.terminal.label import too_few
from regard.training import run_folder
from regard.training.run_folder import CALIBRATION

T = TypeVar("T")
EMPTY: Mapping[str, Any] = {}
FEWEST = 50  # examples: of fewer a temperature tells more of them than of the model


@dataclass(frozen=True)
class Calibration:
    """temperature: of answers. before, after: the expected calibration error without and with it, on `examples`.

    told  why there is none, where there is none.
    """

    temperature: float = 1.0
    before: float = 0.0
    after: float = 0.0
    examples: int = 0
    told: str = ""

    def __post_init__(self) -> None:
        refuse_temperature(self.temperature)

    @property
    def line(self) -> str:
        """For people."""
        if self.told:
            return f"probabilities: as the model gives them, {self.told}"
        error = f"expected calibration error {self.before:.3f} -> {self.after:.3f}"
        return f"probabilities: temperature {self.temperature:.2f}, {error} on {self.examples:,} held-out examples"

    def to_file(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def refuse_temperature(temperature: float) -> None:
    """Refuse a number that no search would find."""
    if not LOWEST / 2 <= temperature <= 2 * HIGHEST:
        raise UsageError(f"temperature: found {temperature}, which is no temperature of answers")


def not_all(read: int, held_out: int | None, answers: str) -> str:
    """Why no more were read, where there are more. answers: to each."""
    more = held_out is not None and held_out > read
    return f": with {answers} no more of the {held_out:,} examples are read at a time" if more else ""


def calibration(logits: np.ndarray, labels: np.ndarray, held_out: int | None = None) -> Calibration:
    """The temperature for held-out logits (n, C) and their classes (n,).

    held_out  how many examples there are, where those given are as many as memory should hold the logits of.
    It is kept where it helps examples that it was not found by, each half being told with that of the other half, and
    where the calibration error does not rise either.
    """
    n = len(labels)
    if n < FEWEST:
        few = f"{too_few(n, 'held-out example')} to find a temperature by"
        return Calibration(examples=n, told=few + not_all(n, held_out, f"{logits.shape[1]:,} classes"))
    halves = np.arange(n) % 2 == 0, np.arange(n) % 2 == 1
    crossed = sum(
        log_loss(logits[there], labels[there], best_temperature(logits[here], labels[here])) * there.sum()
        for here, there in (halves, halves[::-1])
    )
    temperature = best_temperature(logits, labels)
    before, after = (_error(logits, labels, one) for one in (1.0, temperature))
    if crossed >= log_loss(logits, labels) * n or after > before:
        return Calibration(1.0, before, before, n, f"no temperature makes them truer on {n:,} held-out examples")
    return Calibration(temperature, before, after, n)


def _error(logits: np.ndarray, labels: np.ndarray, temperature: float) -> float:
    chances = np.exp(tempered(logits, temperature))
    return calibration_error(reliability(chances.max(-1), chances.argmax(-1) == labels))


def saved_calibration(verified: Callable[[str], Path]) -> Calibration | None:
    """That of a run folder, whose files `verified` gives; None where it has none, as before there was such a thing."""
    hints: dict[str, Any] = {"temperature": float, "before": float, "after": float, "examples": int, "told": str}
    return saved_facts(verified, hints, Calibration)


def saved_facts(
    verified: Callable[[str], Path], hints: Mapping[str, Any], make: Callable[..., T], later: Mapping[str, Any] = EMPTY
) -> T | None:
    """What `make` makes of the values of that file, each of the type that `hints` says; later: those it may lack."""
    folder = verified(PROCESSOR).parent
    if not run_folder.has(folder, CALIBRATION):
        return None
    file = verified(CALIBRATION)
    told = read_json(file)
    with blamed_on(file):
        if not isinstance(told, dict) or not hints.keys() <= told.keys() <= hints.keys() | later.keys():
            raise UsageError(f"expected an object with {', '.join(hints)}")
        return make(**{key: decode(value, {**hints, **later}[key], key) for key, value in told.items()})
