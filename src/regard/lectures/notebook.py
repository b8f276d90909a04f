"""A notebook as a lecture: screens of prose and code, read from the JSON that Jupyter writes.

A screen begins with a Markdown cell that begins with `## `; what stands before the first of them is the opening, under
the title of the lecture. What Jupyter has no place for lies under `regard` in the metadata of the notebook and of
cells. A notebook without any is a lecture too, named as its file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import DataError, UsageError, blamed_on
from regard.storage.regular import NotRegular, TooLarge, read_regular

SUFFIX = ".ipynb"
LARGEST = 50_000_000
KINDS = ("idea", "experiment", "picture", "exercise", "claim", "statements")
SOLUTION = "solution"
NO_NAME = re.compile(r"[/\\\0]")
MAY_FAIL = "raises-exception"  # the tag by which Jupyter knows such a cell


@dataclass(frozen=True)
class Cell:
    """Prose in Markdown, or code.

    is_solution  of an exercise: shown behind a click.
    may_fail     its error is what it shows.
    """

    source: str
    is_code: bool
    is_solution: bool = False
    may_fail: bool = False


@dataclass(frozen=True)
class Screen:
    """One idea. kind: of KINDS. notes: what the presenter sees beside it."""

    title: str
    kind: str
    notes: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Exercise:
    """What is right: a number, a word, a fact, or lists of them. tolerance: of numbers, where it is not the usual."""

    truth: Any
    hint: str = ""
    tolerance: float | None = None


@dataclass(frozen=True)
class Lecture:
    """A notebook that was read.

    exercises   by their number within the lecture, a string.
    statements  what lectures say of this, by its number in the inventory of statements: the verdict.
    digest      of all that is in the file.
    """

    name: str
    number: int
    title: str
    question: str
    screens: tuple[Screen, ...]
    path: Path
    digest: str
    exercises: dict[str, Exercise] = field(default_factory=dict)
    statements: dict[str, str] = field(default_factory=dict)


def read(path: Path) -> Lecture:
    """The lecture in a file; what is no notebook is refused in a line that says why."""
    try:
        data = read_regular(path, LARGEST)
    except TooLarge:
        told = f"{path}: more than {LARGEST // 1_000_000} MB is no lecture; clear its outputs in Jupyter"
        raise DataError(told) from None
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{path}: a folder; name a notebook in it") from None
    except NotRegular as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    with blamed_on(path, DataError, "; a lecture is a notebook as Jupyter writes it (format 4)"):
        return _lecture(json.loads(data.decode("utf-8")), path, hashlib.sha256(data).hexdigest())


def _lecture(told: Any, path: Path, digest: str) -> Lecture:
    if not isinstance(told, dict) or told.get("nbformat") != 4 or not isinstance(told.get("cells"), list):
        raise UsageError("not a notebook of format 4")
    about = _about(told)
    cells = [(cell, _about(cell)) for cell in told["cells"] if cell["cell_type"] in ("markdown", "code")]
    title = str(about.get("title") or next(_titles(cells), path.stem))
    name = str(about.get("name") or "")
    if NO_NAME.search(name):
        raise UsageError(f"{name!r} is no name of a lecture: files are named after it")
    return Lecture(
        name=name or path.stem,
        number=int(about.get("number", 0)),
        title=title,
        question=str(about.get("question", "")),
        screens=tuple(_screens(cells, title)),
        path=path,
        digest=digest,
        exercises={
            str(number): Exercise(one["truth"], str(one.get("hint", "")), one.get("tolerance"))
            for _, own in cells
            for number, one in own.get("answers", {}).items()
        },
        statements={key: str(verdict) for _, own in cells for key, verdict in own.get("statements", {}).items()},
    )


def _screens(cells: list[tuple[Any, dict[str, Any]]], title: str) -> Iterator[Screen]:
    """The opening, where it has anything, and every screen."""
    about: dict[str, Any] = {}
    held: list[Cell] = []
    for raw, own in cells:
        cell = _cell(raw, own)
        if not cell.is_code and cell.source.startswith("## "):
            if held:
                yield _screen(title, about, held)
            title, about, held = cell.source.partition("\n")[0].removeprefix("## ").strip(), own, []
        about = about or own
        body = cell.source if cell.is_code else without_heading(cell.source)
        if body.strip():
            held.append(Cell(body, cell.is_code, cell.is_solution, cell.may_fail))
    yield _screen(title, about, held)


def _screen(title: str, about: dict[str, Any], cells: list[Cell]) -> Screen:
    kind = about.get("kind", "idea")
    return Screen(title, kind if kind in KINDS else "idea", str(about.get("notes", "")), tuple(cells))


def _cell(raw: Any, own: dict[str, Any]) -> Cell:
    source = raw["source"]
    text = source if isinstance(source, str) else "".join(source)
    tags = raw.get("metadata", {}).get("tags", ())
    return Cell(text, raw["cell_type"] == "code", own.get("kind") == SOLUTION, MAY_FAIL in tags)


def without_heading(source: str) -> str:
    """Prose without the heading of its screen, or of the lecture, which is shown apart.

    >>> without_heading("## Smoothing\\n\\nAdd one."), without_heading("### Why")
    ('Add one.', '### Why')
    """
    first, _, rest = source.partition("\n")
    return rest.strip("\n") if first.startswith(("# ", "## ")) else source


def _titles(cells: list[tuple[Any, dict[str, Any]]]) -> Iterator[str]:
    for raw, own in cells:
        first = _cell(raw, own).source.partition("\n")[0]
        if raw["cell_type"] == "markdown" and first.startswith("# "):
            yield first.removeprefix("# ").strip()


def _about(told: Any) -> dict[str, Any]:
    """What a notebook or a cell says for regard."""
    found = told.get("metadata", {}).get("regard", {})
    return found if isinstance(found, dict) else {}
