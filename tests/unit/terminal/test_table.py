"""Tables and numbers for people."""

from __future__ import annotations

import doctest
import io
import re

import pytest

from regard.cli import main, screen
from regard.cli.screen import finite
from regard.run import catalogue, live
from regard.run import settings as recipe
from regard.terminal import table


def test_columns_are_aligned_and_never_cut():
    lines = table.aligned(("name", "count#"), [["a", "1"], ["long" * 50, "1000"]])
    assert len({len(line) for line in lines}) == 1
    assert lines[1].endswith("    1")
    assert "long" * 50 in lines[2]


@pytest.mark.parametrize("most", [20, 40, 80])
def test_a_table_fits_and_loses_nothing(most: int):
    columns = ("name", "kind", "count#", "what it is")
    rows = [["gpt", "text", "12", "one word after the other, " * 4], ["lstm", "text", "7", "gates"]]
    lines = table.fitted(columns, rows, most)
    assert max(map(len, lines)) <= most
    words = " ".join(lines).split()
    assert all(word in words for row in rows for cell in row for word in cell.split())


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_what_a_terminal_shows_has_room_in_it(width: str, monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("COLUMNS", width)
    rows = [("mask", "p1", "Without the causal mask the model cannot write. " * 2, "lecture notes on attention, 1")]
    table.show_table(("study", "number", "claim", "source"), rows, title="Claims")
    lines = re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= int(width)
    assert any("cannot write" in line for line in lines)


def test_json_has_no_infinities():
    assert finite({"a": [float("inf"), (1.0, float("nan"))]}) == {"a": [None, [1.0, None]]}


@pytest.mark.parametrize("module", [table, recipe, live, screen, main, catalogue])
def test_examples_in_docstrings_hold(module: object):
    assert doctest.testmod(module).failed == 0  # pyright: ignore[reportArgumentType]
