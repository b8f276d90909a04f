"""The ranking on terminals of any width, and what it leaves to a note."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from regard.studies.board import LiveBoard
from regard.studies.comparison import Comparison
from regard.studies.notes import notes
from regard.studies.protocol import Protocol
from regard.studies.row import Row
from regard.studies.summary import lines, ranking
from regard.training.display import Evaluation, Start, Update

LABELS = ("ngram", "fnn", "lstm?n_layers=3", "backpack", "mamba")


def measured(label: str, score: float) -> dict[str, object]:
    found = {"path": f"runs/c/{label}", "seed": 0, "fold": 0, "score": score, "scores": {}, "slices": {}}
    found |= {"step": 12_345, "tokens": 1e6, "seconds": 3700.0, "speed": 12_345.0, "speed_unit": "tokens/s"}
    return found | {"state_bytes": 32_800, "state_grows": True, "peak_memory": 454_000_000, "curve": []}


def row(label: str, score: float) -> Row:
    return Row(label, label, 12_100, lr=0.009, rates=[(0.009, score)], runs=[measured(label, score)])


@pytest.fixture
def found() -> Comparison:
    rows = tuple(row(label, 3.0 + place) for place, label in enumerate(LABELS))
    return Comparison(Protocol("world:stories", "text", "1m", 1), rows, Path("runs/c"), {}, 0.64)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_the_table_has_room_in_a_terminal_and_leaves_nothing_out(found: Comparison, width: int) -> None:
    told = lines(found, width)
    table = told[: next(place for place, line in enumerate(told) if "is ahead" in line)]
    assert max(map(len, table)) <= width
    columns, rows = ranking(found)
    for cell in [*(name.rstrip("#") for name in columns), *(cell for row in rows for cell in row)]:
        assert any(cell in line for line in table), cell


def test_in_a_pipe_the_table_is_whole(found: Comparison) -> None:
    head = lines(found)[0]
    assert all(name.rstrip("#") in head for name in ranking(found)[0])


def test_what_was_tested_and_what_the_intervals_are_of_is_a_note(found: Comparison) -> None:
    assert any(note.startswith("Test examples were not told one by one") for note in notes(found))


def test_the_columns_that_say_most_have_room_in_eighty(found: Comparison) -> None:
    head = lines(found, 80)[0]
    assert all(name in head for name in ("rank", "model", "loss", "+-", "over best", "params", "rate", "steps", "time"))


def test_a_reason_stands_in_the_notes_and_not_in_the_table(found: Comparison) -> None:
    reason = "out of memory with train.batch_size=64 and train.length=256; lower one of them"
    failed = replace(found, rows=(*found.rows, Row("gpt", "gpt", 5, failed=reason)))
    columns, rows = ranking(failed)
    assert rows[-1][:3] == ["failed", "gpt", ""]
    assert len(rows[-1]) == len(columns)
    assert any(reason in note for note in notes(failed))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_live_table_keeps_the_names_of_models_whole(width: int) -> None:
    board = LiveBoard(io.StringIO())
    board.console = Console(file=io.StringIO(), width=width, highlight=False)
    board.live.console = board.console
    board.begin(list(LABELS))
    board.ended("ngram", "failed: out of memory with train.batch_size=64 and train.length=256")
    lane = board.stage("lstm?n_layers=3", "seed 1 of 3", 0.0, 1.0)
    lane.start(Start(Path("x"), "9s", 10, "cpu", 0, 0.0, "tokens"))
    lane.update(Update(1700, 0.5, 1.0, 3.0, 70, 1234.0, 0.25, 1.0, 1e-3))
    lane.evaluated(Evaluation(7, 0.3, 0.3, True, 9, 0.1, None, {"accuracy": 0.5}))
    with board.console.capture() as seen:
        board.console.print(board.picture())
    text = seen.get()
    board.finish()
    assert all(label in text for label in LABELS)
    assert "seed 1 of 3" in text
    assert "of the comparison" in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert ("speed" in text) == (width == 120)
