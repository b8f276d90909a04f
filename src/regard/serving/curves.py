"""The learning curves of runs as the page draws them: what came to each since it asked last."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.storage.lock import writer_of
from regard.training import budget
from regard.training.follow import MOST_BYTES, Place, follow
from regard.training.run_folder import CONFIG, METRICS

MOST_AT_ONCE = 4 * MOST_BYTES  # bytes that are read for one question; the page asks again for the rest
MOST_SETTINGS, LONGEST = 120, 80  # of a run that the page can search, and letters of one
PARTS = ("model", "train", "data")
GONE = {"gone": True}


def progress(paths: Mapping[str, Path], asked: Mapping[str, Place]) -> dict[str, Any]:
    """What came to each run that is asked for, by its name. A run that has gone, or cannot be read, says so."""
    found, left = dict[str, Any](), MOST_AT_ONCE
    for name, place in asked.items():
        path = paths.get(name)
        if path is None or not path.is_dir():
            found[name] = GONE
            continue
        try:
            came = follow(path, place, max(1, min(left, MOST_BYTES))) if left > 0 else None
        except RegardError as error:
            found[name] = {"error": str(error)}
            continue
        if came is None:
            found[name] = {"offset": place.offset, "mark": place.mark, "points": [], "has_more": True}
            continue
        left -= came.place.offset - (0 if came.is_new else place.offset)
        found[name] = {
            "offset": came.place.offset,
            "mark": came.place.mark,
            "points": came.points,
            "is_new": came.is_new,
            "has_more": came.has_more,
            "is_training": writer_of(path) is not None,
        }
    return found


def told_of(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """What curves want to know of a run: its settings, what it learns from, its budget, since when, and its numbers."""
    told: dict[str, Any] = {"settings": settings_of(config), "has_curves": False, "began": 0.0}
    with suppress(OSError):
        told["began"] = (path / CONFIG).stat().st_mtime
        told["has_curves"] = (path / METRICS).stat().st_size > 0
    data = config.get("data", {})
    told["data"] = [str(data.get("hash") or ""), str(data.get("path") or data.get("name") or "")]
    with suppress(RegardError):
        spent = budget.parse(config.get("train", {}).get("budget", ""))
        told["budget"] = {"kind": spent.kind, "amount": spent.amount}
    return told


def settings_of(config: Mapping[str, Any]) -> dict[str, str | float | bool]:
    """The settings of a run by their names with the part that they are of, such as model.d_model.

    What was chosen comes before what the model was built of, and what stands higher in that before what stands lower.
    """
    found: dict[str, str | float | bool] = {}
    about = config.get("model", {})
    chosen = about.get("settings", {}) | {key: about[key] for key in ("name", "size") if key in about}
    for part, values in zip(PARTS, (chosen, config.get("train", {}), config.get("data", {})), strict=True):
        _add(found, part, values.items())
    _add(found, PARTS[0], _leaves(about.get("config", {})))
    return found


def _add(found: dict[str, str | float | bool], part: str, values: Any) -> None:
    for key, value in values:
        is_plain = isinstance(value, (str, int, float)) and len(str(value)) <= LONGEST
        is_plain &= not isinstance(value, float) or math.isfinite(value)
        if is_plain and len(found) < MOST_SETTINGS:
            found.setdefault(f"{part}.{key}", value)


def _leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every key and value of a tree, the highest first."""
    waiting = deque([tree])
    while waiting:
        at = waiting.popleft()
        if isinstance(at, dict):
            yield from at.items()
            waiting += [value for value in at.values() if isinstance(value, (dict, list))]
        elif isinstance(at, list):
            waiting += at
