"""The table of a comparison while it runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from regard.core.progress import stage
from regard.studies.board import LineBoard, LiveBoard
from regard.training.display import Evaluation, Start, Update


def drive(board: LineBoard | LiveBoard) -> None:
    board.begin(["a", "b"])
    lane = board.stage("a", "training", 0.0, 1.0)
    lane.start(Start(Path("x"), "9s", 10, "cpu", 0, 0.0, "texts"))
    lane.update(Update(7, 0.5, 1.0, 3.0, 70, 1234.0, 0.25, 1.0, 1e-3))
    lane.evaluated(Evaluation(7, 0.3, 0.3, True, 9, 0.1, None, {"accuracy": 0.5}))


def test_a_live_table_shows_where_each_model_is() -> None:
    stream = io.StringIO()
    board = LiveBoard(stream)
    drive(board)
    with board.console.capture() as seen:
        board.console.print(board.picture())
    text = seen.get()
    for words in ("a", "training", "0.2500", "0.3000, accuracy 0.5", "1.23k texts/s", "3s", "25% of the comparison"):
        assert words in text
    board.finish()


def test_lines_tell_every_stage_and_survive_a_closed_stream() -> None:
    stream = io.StringIO()
    board = LineBoard(stream)
    drive(board)
    board.ended("a", "done")
    assert stream.getvalue().splitlines() == ["  0%  a: training", " 50%  a: done"]

    class Closed(io.StringIO):
        def write(self, *_: object) -> int:
            raise BrokenPipeError

    board = LineBoard(Closed())
    drive(board)
    assert board.stream is None


def test_reading_the_data_is_shown_before_the_first_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.core.progress.QUIET", 0.0)
    stream = io.StringIO()
    with LineBoard(stream).preparing(), stage("reading", 100, "bytes") as advance:
        advance(50)
    assert "reading   50%" in stream.getvalue()
    with LineBoard(None).preparing(), stage("reading", 100, "bytes") as advance:
        advance(50)
