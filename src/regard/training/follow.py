"""Following a training while it is under way: what came to its metrics.jsonl since somebody looked last.

    place = BEGINNING
    while True: came = follow(path, place); place = came.place

Nothing is held between two looks, and one look reads so many bytes and gives so many points at most, however long the
file is: of a million steps every so many are told, and every evaluation as long as these are few.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError
from regard.storage.regular import open_regular
from regard.training.metrics import LONGEST_LINE, checked, record_in
from regard.training.run_folder import METRICS

MOST_BYTES = 1 << 22  # of one look; a line may be longer than that no more than in metrics.jsonl as a whole
MOST_POINTS = 400  # of each kind from one look
MOST_KEYS = 40
EVALUATED = b'"valid_'
ABSCISSAS = ("step", "tokens", "seconds")


@dataclass(frozen=True)
class Place:
    """offset: bytes that were read. mark: of which file, which is another one when a training begins again."""

    offset: int = 0
    mark: str = ""


BEGINNING = Place()


@dataclass(frozen=True)
class Came:
    """place   from where to go on.
    points    what was measured, in order; each has its step.
    is_new    what was known before is of a file that is no more.
    has_more  there is more to be read at once.
    """

    place: Place = BEGINNING
    points: list[dict[str, float | None]] = field(default_factory=list)
    is_new: bool = False
    has_more: bool = False


def follow(run: Path, place: Place, most: int = MOST_BYTES) -> Came:
    """What came since `place`, of at most so many bytes. A file that is not there yet has nothing, nor has a line that
    goes on beyond them.
    """
    try:
        with open_regular(run / METRICS, links=False) as file:
            found = os.fstat(file.fileno())
            mark = f"{found.st_dev:x}-{found.st_ino:x}"
            goes_on = place.mark == mark and 0 <= place.offset <= found.st_size
            begin = place.offset if goes_on else 0
            file.seek(begin)
            whole = _read(file, min(most, found.st_size - begin))
    except FileNotFoundError:
        return Came(is_new=place != BEGINNING)
    except OSError as error:
        raise CheckpointError(f"{run / METRICS}: {error.strerror}") from None
    end = whole.rfind(b"\n") + 1  # a last line may be torn, or still being written
    if not end and len(whole) >= LONGEST_LINE:
        end = len(whole)  # no line of ours is so long
    points = _points(whole[:end].splitlines(), f"{run / METRICS}, after byte {begin}")
    has_more = begin + len(whole) < found.st_size
    return Came(Place(begin + end, mark), points, not goes_on and place != BEGINNING, has_more)


def _read(file: io.FileIO, count: int) -> bytes:
    """So many bytes, or those that there are: the system may give fewer at once."""
    with io.BufferedReader(file) as buffered:
        return buffered.read(count)


def _points(lines: Sequence[bytes], where: str) -> list[dict[str, float | None]]:
    """The records of some of the lines, as numbers. An evaluation says of no tokens; the line before it does."""
    found: list[dict[str, float | None]] = []
    tokens: float | None = None
    for number in _chosen(lines):
        record = record_in(lines[number])
        if record is None:
            continue
        point = _numbers(checked(record, where))
        tokens = point.setdefault("tokens", tokens)
        found.append(point)
    return found


def _chosen(lines: Sequence[bytes]) -> list[int]:
    """The numbers of lines to be read: of each kind every so many and the last, and what stands before evaluations."""
    held_out = [number for number, line in enumerate(lines) if EVALUATED in line]
    every = set(_spread(range(len(lines))))
    evaluated = set(_spread(held_out))
    before = {number - 1 for number in evaluated if number}
    left_out = set(held_out) - evaluated
    return sorted((every - left_out) | evaluated | (before - left_out))


def _spread(numbers: Sequence[int]) -> Iterable[int]:
    step = max(1, math.ceil(len(numbers) / MOST_POINTS))
    return [*numbers[::step], *numbers[-1:]]


def _numbers(record: dict[str, Any]) -> dict[str, float | None]:
    """What of a record can be drawn; None for a score that is infinite."""
    told: dict[str, float | None] = {}
    for key, value in record.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and len(told) < MOST_KEYS:
            told[key] = value if math.isfinite(value) else None
    return told
