"""The ways to call the command: in this process, which saves the second that importing torch takes, as one, or many
times in one of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.cli.main import main

SOURCE = Path(__file__).parents[2] / "src"
ANIMALS, PLACES, SONGS = ("cat", "dog", "bird", "fox", "hen"), ("mat", "log", "hill", "roof"), ("old", "new", "sad")
TEXT = "".join(
    f"the {animal} sat on the {place} and sang an {song} song to the {other} .\n"
    for animal in ANIMALS
    for place in PLACES
    for song in SONGS
    for other in ANIMALS[:2]
)
TINY = ("--size", "tiny", "--device", "cpu", "--set", "train.length=16", "--set", "train.batch_size=4")


@dataclass(frozen=True)
class Outcome:
    """What a call of the command left."""

    code: int
    out: str
    err: str


class Input(io.TextIOWrapper):
    """Standard input with some text in it."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()), encoding="utf-8")


Call = Callable[..., Outcome]


def call_here(*argv: str, stdin: str = "") -> Outcome:
    """The command in this process, which saves the second that importing torch takes."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.stdin = sys.stdin, Input(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(argv)
    finally:
        sys.stdin = before
    return Outcome(code, out.getvalue(), err.getvalue())


def done(*argv: str) -> str:
    """What a command that must succeed writes."""
    outcome = call_here(*argv)
    assert outcome.code == 0, (argv, outcome.err)
    return outcome.out


def told(*argv: str) -> Any:
    """Its object of --json."""
    return json.loads(done(*argv, "--json"))


def refused(*argv: str) -> str:
    """The line with which a command that must fail says why."""
    outcome = call_here(*argv)
    assert outcome.code not in (0, 1), (argv, outcome.out, outcome.err)
    last = outcome.err.strip().splitlines()[-1]
    assert last.startswith("regard: error: ")
    return last


def environment(**changes: str) -> dict[str, str]:
    """The environment of a process that finds this checkout."""
    return os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"} | changes


def call_process(*argv: str, stdin: str = "", cwd: Path | None = None, **changes: str) -> Outcome:
    """The command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "regard", *argv],
        input=stdin.encode(),
        capture_output=True,
        cwd=cwd,
        env=environment(**changes),
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def commands_of(page: Path) -> list[list[str]]:
    """The words after `regard` of the lines that call it, in the blocks of a page."""
    blocks = re.findall(r"^```\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.startswith("regard ")]


@contextlib.contextmanager
def conversation(cwd: Path, **changes: str) -> Iterator[Call]:
    """One process that is given commands as long as the block lasts."""
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=cwd,
        env=environment(**changes),
        text=True,
    )
    asks, answers = process.stdin, process.stdout
    assert asks is not None
    assert answers is not None

    def call(*argv: str) -> Outcome:
        print(json.dumps(argv), file=asks, flush=True)
        return Outcome(**json.loads(answers.readline()))

    try:
        yield call
    finally:
        asks.close()
        process.wait(timeout=30)
        answers.close()


def answer_commands() -> None:
    """The other end of a conversation: a command a line, and what it left a line."""
    for line in sys.stdin:
        print(json.dumps(vars(call_here(*json.loads(line)))), flush=True)


if __name__ == "__main__":
    answer_commands()
