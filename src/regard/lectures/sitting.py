"""A sitting: a lecture that was run, as plain JSON, which pages draw; kept by content until the lecture changes."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.charts.prose import nodes
from regard.core.version import __version__
from regard.errors import DataError, blamed_on
from regard.lectures.execution import SatCell, SatScreen, screens
from regard.lectures.notebook import Lecture
from regard.storage import disk

KEY = "[0-9a-f]" * 16

# Called with the number of a screen, from 1 on, and what is on it, as soon as it has run.
Tell = Callable[[int, dict[str, Any]], None]


def sit(lecture: Lecture, tell: Tell | None = None) -> dict[str, Any]:
    """Run every cell in this process, and give what it has shown. It is code: sit only what you would run."""
    return gathered(lecture, screens(lecture), tell)


def gathered(lecture: Lecture, sat: Iterable[SatScreen], tell: Tell | None = None) -> dict[str, Any]:
    """The sitting that these screens make, told as they come."""
    start, found = time.perf_counter(), []
    for one in sat:
        with blamed_on(f"lecture {lecture.name}, screen {one.number} ({one.screen.title})", DataError):
            found.append(screen(one))
        if tell is not None:
            tell(one.number, found[-1])
    about = {"name": lecture.name, "number": lecture.number, "title": lecture.title, "question": lecture.question}
    return {**about, "seconds": round(time.perf_counter() - start, 2), "screens": found}


def screen(sat: SatScreen) -> dict[str, Any]:
    """A screen as plain JSON."""
    one = sat.screen
    return {"title": one.title, "kind": one.kind, "notes": one.notes, "cells": [_cell(cell) for cell in sat.cells]}


def _cell(sat: SatCell) -> dict[str, Any]:
    if not sat.cell.is_code:
        told: dict[str, Any] = {"prose": nodes(sat.cell.source)}
        return told | {"is_solution": True} if sat.cell.is_solution else told
    outputs = [output.to_dict() for output in sat.outputs]
    return {"code": sat.cell.source, "is_solution": sat.cell.is_solution, "outputs": outputs}


def kept(lecture: Lecture) -> dict[str, Any] | None:
    """A sitting of the same notebook by the same version of regard that was made before, or None."""
    with suppress(OSError, ValueError):
        found = json.loads(_place(lecture).read_text(encoding="utf-8"))
        if isinstance(found, dict) and isinstance(found.get("screens"), list):
            return found
    return None


def keep(lecture: Lecture, sitting: dict[str, Any]) -> None:
    """Remember a sitting. Where nothing can be written it is made again the next time."""
    place = _place(lecture)
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        for old in place.parent.glob(f"{glob.escape(lecture.name)}-{KEY}.json"):
            disk.discard(old)
        disk.publish(place, [json.dumps(sitting, ensure_ascii=False).encode("utf-8")])


def _place(lecture: Lecture) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "regard" / "lectures"
    key = hashlib.sha256(f"{__version__} {lecture.digest}".encode()).hexdigest()[:16]
    return base / f"{lecture.name}-{key}.json"
