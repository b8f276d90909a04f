"""What a file, a label or a model says is shown and commands no terminal; what a model writes to a pipe stays exact."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from calling import call_here

from regard.cli import failure
from regard.cli.screen import Screen
from regard.errors import DataError
from regard.run.live import Live
from regard.studies.board import LineBoard, LiveBoard
from regard.terminal.table import COMMANDS, show_table, visible, visible_line
from regard.training.display import Lines

TITLE = "\x1b]0;owned\x07"
HOSTILE = f"{TITLE}\x9b2J\x7f\u202egood\u2066\u2028\ud800\r\x08"


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def test_every_character_that_a_terminal_obeys_is_replaced():
    assert visible(HOSTILE) == "\ufffd]0;owned\ufffd\ufffd2J\ufffd\ufffdgood" + "\ufffd" * 5
    assert visible("plain\ttext\n ä 漢 👩‍👧 é") == "plain\ttext\n ä 漢 👩‍👧 é"
    assert visible_line("a\nb\tc") == "a\\nb\\tc"


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_tables_lines_and_notes_are_harmless(monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]):
    out, err = stream(), stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    screen = Screen()
    screen.line(HOSTILE)
    screen.note(HOSTILE)
    screen.hint(HOSTILE)
    screen.table((HOSTILE, "n#"), [(HOSTILE, 1)], title=HOSTILE)
    show_table((HOSTILE,), [(f"{HOSTILE}\nsecond",)])
    failure.report(DataError(f"file {HOSTILE}"), debug=False)
    failure.report(DataError(f"file {HOSTILE}"), debug=True)
    for text in (out.getvalue(), err.getvalue()):
        assert "owned" in text
        assert TITLE not in text
        assert not COMMANDS.search(_without_styles(text))


def test_what_a_model_wrote_is_exact_in_a_pipe_and_visible_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    for stream, expected in ((io.StringIO(), f"a{TITLE}\n"), (Terminal(), "a\ufffd]0;owned\ufffd\n")):
        monkeypatch.setattr(sys, "stdout", stream)
        Screen().written(f"a{TITLE}")
        assert stream.getvalue() == expected


def test_json_holds_the_same_text_in_harmless_characters(monkeypatch: pytest.MonkeyPatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    Screen(json=True).object({"label": HOSTILE})
    assert not COMMANDS.search(out.getvalue().rstrip("\n"))
    assert json.loads(out.getvalue())["label"] == HOSTILE


def test_displays_while_training_are_harmless():
    out = Terminal()
    for display in (Lines(out), Live(out, HOSTILE)):
        display.note(HOSTILE)
    live = Live(out, HOSTILE)
    live.console.print(live.picture())
    for board in (LineBoard(out), LiveBoard(out)):
        board.begin([HOSTILE])
        board.note(HOSTILE)
        board.ended(HOSTILE, HOSTILE)
        board.finish()
    assert "owned" in out.getvalue()
    assert TITLE not in out.getvalue()
    for char in ("\x9b", "\u202e", "\x07"):
        assert char not in out.getvalue()


def test_a_label_cannot_set_the_title_of_a_terminal(tmp_path: Path):
    rows = [f"a {i} film\t{TITLE if i % 2 else 'plain'}\n" for i in range(60)]
    (tmp_path / "my.tsv").write_text("".join(rows))
    command = ("train", str(tmp_path / "my.tsv"), "--task", "labelled", "--size", "tiny", "--budget", "2steps")
    outcome = call_here(*command, "--device", "cpu", "--out", str(tmp_path / "run"))
    assert outcome.code == 0, outcome.err
    evaluated = call_here("evaluate", str(tmp_path / "run"))
    for text in (outcome.out, outcome.err, evaluated.out, evaluated.err):
        assert "\x1b" not in text
    assert "owned" in evaluated.out


def _without_styles(text: str) -> str:
    """Without what rich writes to colour a table."""
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)
