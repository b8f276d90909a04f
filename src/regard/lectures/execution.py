"""The cells of a lecture, run one after the other in this process, and what each of them shows.

As in Jupyter a cell shows what it prints and the value of its last line. Names that a cell gives are known to those
after it.
"""

from __future__ import annotations

import ast
import io
import linecache
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from regard.errors import RegardError, Stopped
from regard.explain.view import View
from regard.lectures import folder
from regard.lectures.exercise import sitting_in
from regard.lectures.notebook import Cell, Lecture, Screen

MOST = 20_000  # characters of what a cell prints, or of a value
MODULE = "regard_lecture"


class CellError(RegardError):
    """A cell of a lecture that failed: which one, in which line, and with what."""


@dataclass(frozen=True)
class Output:
    """What a cell shows. kind: "view", whose `value` is a View; or "text", "svg" or "error", whose is a text."""

    kind: str
    value: Any

    def to_dict(self) -> dict[str, Any]:
        if self.kind == "view":
            return {"kind": "view", "view": self.value.to_page()}
        return {"kind": self.kind, "svg" if self.kind == "svg" else "text": self.value}


@dataclass(frozen=True)
class SatCell:
    cell: Cell
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True)
class SatScreen:
    """A screen with what its cells have shown. number: from 1 on."""

    number: int
    screen: Screen
    cells: tuple[SatCell, ...]


def screens(lecture: Lecture) -> Iterator[SatScreen]:
    """Every screen, as soon as its cells have run. A cell that fails ends it with a CellError."""
    folder.begin()
    with _module() as names:
        for number, screen in enumerate(lecture.screens, start=1):
            sat, n_code = [], 0
            for cell in screen.cells:
                n_code += cell.is_code
                place = f"lecture {lecture.name}, screen {number} ({screen.title}), cell {n_code}"
                with sitting_in(lecture):
                    sat.append(SatCell(cell, tuple(_run(cell, place, names)) if cell.is_code else ()))
            yield SatScreen(number, screen, tuple(sat))


@contextmanager
def _module() -> Iterator[dict[str, Any]]:
    """The names of a module that lives as long as the lecture: classes that it defines say it is theirs."""
    module = ModuleType(MODULE)
    before = sys.modules.get(MODULE)
    sys.modules[MODULE] = module
    try:
        yield vars(module)
    finally:
        del sys.modules[MODULE]
        if before is not None:
            sys.modules[MODULE] = before


def _run(cell: Cell, place: str, names: dict[str, Any]) -> list[Output]:
    """What one cell shows. What it says on stderr is for whoever trains, not for who reads."""
    printed, last, error = io.StringIO(), None, ""
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        try:
            value = _value(cell.source, place, names)
            last = None if value is None else _shown(value)
        except Stopped:
            raise
        except Exception as failure:
            error = _told(failure, place)
            if not cell.may_fail:
                raise CellError(f"{place}{error}") from failure
    text = printed.getvalue()
    found = [Output("text", _cut(text))] if text.strip() else []
    if error:
        return [*found, Output("error", error.partition(": ")[2])]
    return found if last is None else [*found, last]


def _value(source: str, place: str, names: dict[str, Any]) -> Any:
    """Run the lines; the value of the last, where it is an expression and does not end in a semicolon."""
    file = f"<{place}>"
    # So that a traceback, and `inspect`, find the lines.
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    tree = ast.parse(source, file)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
        exec(compile(ast.Module(tree.body[:-1], []), file, "exec", dont_inherit=True), names)
        return eval(compile(ast.Expression(last.value), file, "eval", dont_inherit=True), names)
    exec(compile(tree, file, "exec", dont_inherit=True), names)
    return None


def _told(failure: Exception, place: str) -> str:
    """The line of the cell and what happened, as `, line 3: NameError: name 'x' is not defined`."""
    lines = [frame.lineno for frame in traceback.extract_tb(failure.__traceback__) if frame.filename == f"<{place}>"]
    line = failure.lineno if isinstance(failure, SyntaxError) else (lines or [None])[-1]
    what = str(failure) if isinstance(failure, RegardError) else f"{type(failure).__name__}: {failure}"
    return f"{'' if line is None else f', line {line}'}: {what}"


def _shown(value: Any) -> Output:
    if isinstance(value, View):
        return Output("view", _named(value))
    draw = None if isinstance(value, type) else getattr(value, "to_svg", None)
    return Output("svg", draw()) if callable(draw) else Output("text", _cut(repr(value)))


def _named(view: View) -> View:
    """The view with its run called by the name of its folder, which lies somewhere else every time."""
    run, remake = view.about.get("run"), view.remake
    if not run:
        return view
    again = None if remake is None else lambda values: _named(remake(values))
    return replace(view, about=view.about | {"run": Path(str(run)).name}, remake=again)


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}\n... {len(text) - MOST} characters more"
