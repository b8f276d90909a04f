"""Small things that a person expects of a command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import typer
from calling import TEXT, TINY, call_here

from regard.cli.main import application

COMMANDS = sorted(typer.main.get_command(application()).commands)
NAME = "my run's é 日本, 2 (b) & $HOME"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_h_is_help(command: str):
    words = [command] if command else []
    short, long = call_here(*words, "-h"), call_here(*words, "--help")
    assert short.code == long.code == 0
    assert short.out == long.out
    assert "-h" in short.out


def test_a_run_may_have_spaces_and_any_letters_in_its_name_and_every_printed_command_works(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    run = f"all of mine/{NAME}"
    outcome = call_here("train", "my.txt", "--out", run, "--budget", "2steps", "--json", *TINY)
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert told["run"] == run
    shown = [line for line in call_here("show", run).out.splitlines() if line.startswith("regard ")]
    for line in [*told["next"], *shown]:
        found = call_here(*shlex.split(line)[1:], "--quiet")
        assert found.code == 0, (line, found.err)
    counted = call_here("train", "my.txt", "--model", "ngram", "--out", f"{NAME} counted", "--json")
    for line in json.loads(counted.out)["next"]:
        assert call_here(*shlex.split(line)[1:]).code == 0, line


def test_the_command_that_goes_on_is_quoted(here: Path, monkeypatch: pytest.MonkeyPatch):
    from regard.errors import Stopped
    from regard.run import train

    def stopped(*_: object, **__: object) -> None:
        raise Stopped("stopped; continue with --resume")

    monkeypatch.setattr(train, "train_run", stopped)
    outcome = call_here("train", "--out", NAME)
    assert outcome.code == 75
    assert outcome.err.rstrip("\n").endswith(f": regard train --resume --out {shlex.quote(NAME)}")


@pytest.mark.parametrize("name", [" a", "a ", "-a", "a\tb", "a\x1b[2Jb", "a\u202eb", "x" * 65, "日" * 70, "..", "."])
def test_a_name_that_something_would_trip_over_is_refused(here: Path, name: str):
    outcome = call_here("train", f"--out={name}", "--budget", "1steps")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1), outcome.err
    assert not list(here.iterdir())
