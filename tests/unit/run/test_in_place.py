"""Progress in a notebook: one output of the cell, redrawn, and its last picture is the last that there was."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regard.run import in_place
from regard.run.live import Live, Patient, display_for
from regard.studies.board import LineBoard, LiveBoard, board_for
from regard.training.display import Lines, Start, Update

START = Start(Path("runs/x"), "2m", 1000, "cpu", 0, 0.0)


class OutStream(io.StringIO):
    """The stream of a kernel, which is known by its module."""


OutStream.__module__ = "ipykernel.iostream"


class Cell:
    """What a cell shows, as the handle of `display` changes it."""

    def __init__(self) -> None:
        self.outputs = list[str]()
        self.changes = 0

    def display(self, html: str, display_id: bool) -> Cell:
        assert display_id
        self.outputs.append(html)
        return self

    def update(self, html: str) -> None:
        self.outputs[-1] = html
        self.changes += 1


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    cell = Cell()
    module: Any = ModuleType("IPython.display")
    module.display, module.HTML = cell.display, str
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return cell


def update(step: int) -> Update:
    return Update(step, step / 100, float(step), 100.0 - step, step * 10, 1234.0, 3.0, 1.0, 1e-3)


def test_a_training_has_one_output_that_ends_with_its_last_numbers(cell: Cell):
    stream = OutStream()
    display = display_for(stream, "<lstm> small")
    display.note("a line")
    display.start(START)
    for step in range(1, 51):
        display.update(update(step))
    display.finish(None)
    assert len(cell.outputs) == 1
    assert cell.changes < 20, "a page is not laid out anew for every step"
    assert "step 50" in cell.outputs[0]
    assert "&lt;lstm&gt; small" in cell.outputs[0]
    assert "\x1b" not in cell.outputs[0]
    assert "a line" in stream.getvalue()


def test_a_comparison_has_one_output(cell: Cell):
    board = board_for(OutStream(), quiet=False)
    board.begin(["ngram", "lstm"])
    lane = board.stage("lstm", "training", 0.0, 1.0)
    lane.start(START)
    lane.update(update(7))
    board.ended("ngram", "done")
    board.finish()
    assert len(cell.outputs) == 1
    assert all(name in cell.outputs[0] for name in ("ngram", "lstm", "done"))


def test_other_streams_are_as_they_were(cell: Cell):
    display, board = display_for(io.StringIO(), "x"), board_for(io.StringIO(), quiet=False)
    assert isinstance(display, Patient)
    assert isinstance(display.inner, Lines)
    assert isinstance(board, LineBoard)
    assert in_place.redrawn_on(io.StringIO()) is None
    assert cell.outputs == []


def test_a_terminal_is_redrawn_by_rich(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    display, board = display_for(Terminal(), "x"), board_for(Terminal(), quiet=False)
    assert isinstance(display, Patient)
    assert isinstance(display.inner, Live)
    assert isinstance(board, LiveBoard)
    monkeypatch.setenv("TERM", "dumb")
    assert in_place.redrawn_on(Terminal()) is None
