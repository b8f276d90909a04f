"""metrics.jsonl: one JSON object a line, each line written whole, and the learning curve that is read from it.

A file that cannot be written warns once; training goes on.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import CheckpointError
from regard.storage import disk
from regard.storage.regular import open_regular
from regard.training.run_folder import METRICS
from regard.training.track import Tracking

LONGEST_LINE = 1 << 20  # bytes
LARGEST_NUMBER = 1e300
COUNTED = ("step", "tokens", "seconds")
NUMBERS = (*COUNTED, "loss", "rate", "gradient_norm", "padding")
CURVE = 200
P = TypeVar("P")


class Metrics:
    """Where the numbers of a run go: a file of lines, None for none, and the trackers that were asked for."""

    def __init__(self, path: Path | None, warn: Callable[[str], None], trackers: Tracking | None = None) -> None:
        self.path = path
        self.warn = warn
        self.trackers = Tracking() if trackers is None else trackers
        self.has_warned = False

    def write(self, record: dict[str, Any]) -> None:
        """Append a record; `step` is its abscissa."""
        if self.path is None:
            return
        try:
            disk.append(self.path, json.dumps(record).encode() + b"\n")
        # A log that cannot be written must not end a run.
        except Exception as error:
            if not self.has_warned:
                self.warn(f"{self.path}: metrics are not being written: {error}; training goes on")
            self.has_warned = True
        self.trackers.log(record)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file, one after the other; a last line torn by a kill is left out, other things are refused."""
    try:
        with open_regular(path, links=False) as raw, io.BufferedReader(raw) as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                record = record_in(line)
                if record is not None:
                    yield checked(record, f"{path}, line {number}")
    except FileNotFoundError:
        return
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None


def up_to(path: Path, step: int) -> Iterator[bytes]:
    """The lines of records up to `step`: what a run that goes on from there keeps."""
    return (json.dumps(record).encode() + b"\n" for record in read(path) if record["step"] <= step)


def record_in(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None of one that is torn, or holds no object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def checked(record: dict[str, Any], where: str) -> dict[str, Any]:
    """A record whose numbers are numbers: whoever draws or prints them does not ask again."""
    if "step" not in record:
        raise CheckpointError(f"{where}: says of no step what it measured; the file is not one of regard")
    for key, value in record.items():
        if key in NUMBERS or key.startswith("valid_"):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            # A score may well be infinite, such as the perplexity of what was held to be impossible.
            is_endless = is_number and key not in COUNTED and value in (math.inf, -math.inf)
            if not is_number or (abs(value) > LARGEST_NUMBER and not is_endless):
                raise CheckpointError(f"{where}: {key} is no number; the file is not one of regard")
    return record


def curve(path: Path) -> list[dict[str, float]]:
    """Held-out loss and score by time, step and tokens, thinned where there are very many."""
    return thinned(evaluations(path))


def evaluations(path: Path) -> list[dict[str, float]]:
    """Every evaluation of a training: held-out loss and score by time, step and tokens."""
    tokens, points = 0.0, []
    for record in read(path / METRICS):
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
