"""What a command says: a line is one line, whatever names are in it."""

from __future__ import annotations

import pytest

from regard.cli.screen import Screen


def test_a_name_with_the_end_of_a_line_in_it_begins_no_other_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.line("run a\nall files verified")
    screen.note("run b\n\x1b[2Jdone")
    screen.lines("one\ntwo")
    said = capsys.readouterr()
    assert said.out == "run a\\nall files verified\none\ntwo\n"
    assert said.err == "run b\\n\ufffd[2Jdone\n"
