"""Where a command speaks and listens: tables and lines for people, one JSON object for programs, text from stdin.

With `--json` only the object goes to stdout, and what people may want to see meanwhile goes to stderr.

The end of a run: what was learnt, and what to do next.

Answers of a run to what a person gives it: one a line, in the order of the inputs.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from regard.errors import DataError, UsageError
from regard.terminal.label import wrapped
from regard.terminal.table import COMMANDS, finite, show_table, visible, width_of

if TYPE_CHECKING:
    from regard.run.run import Run
    from regard.training.display import Result

# Flags that are absent unless somebody gave them.
OWN = ("temperature", "max_tokens")


@dataclass(frozen=True)
class Screen:
    """The two streams and what may go to them."""

    json: bool = False
    quiet: bool = False

    @property
    def people(self) -> TextIO:
        """The stream for progress: stdout, or stderr when stdout belongs to a program."""
        return sys.stderr if self.json else sys.stdout

    def line(self, text: str = "") -> None:
        """A line of the result, and one only: a name with the end of a line in it begins no other."""
        if not self.json:
            print(_one(text))

    def lines(self, text: str) -> None:
        """A text of several lines, of the result."""
        for line in text.split("\n"):
            self.line(line)

    def written(self, text: str) -> None:
        """A line of what a model wrote: to the byte in a pipe, made visible on a terminal."""
        if not self.json:
            print(visible(text) if sys.stdout.isatty() else text)

    def note(self, text: str) -> None:
        """A remark beside the result, on stderr."""
        if not self.quiet:
            print(_one(text), file=sys.stderr, flush=True)

    def hint(self, text: str) -> None:
        """What to do next, for somebody who sits at a terminal."""
        most = width_of(sys.stdout)
        if most is not None and not self.quiet:
            self.line("\n".join(wrapped(text, most)))

    def object(self, value: dict[str, Any]) -> None:
        """The result for a program."""
        if self.json:
            print(COMMANDS.sub(_escaped, json.dumps(finite(value), ensure_ascii=False)))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
        """A table of the result."""
        if not self.json:
            show_table(columns, rows, title=title)


def _one(text: str) -> str:
    return visible(text.replace("\n", "\\n"))


def _escaped(found: re.Match[str]) -> str:
    """A character that JSON leaves as it is and a terminal would obey, as JSON may also write it."""
    return f"\\u{ord(found[0]):04x}"


def given_text(argument: str | None) -> str | None:
    """The argument, or all of stdin when there is none and somebody pipes; `-` asks for stdin. None: nothing given.

    The newline with which a pipe ends is not part of the text.
    """
    if argument is not None and argument != "-":
        return checked_text(argument, "the text")
    if argument is None and sys.stdin.isatty():
        return None
    return read_stdin().removesuffix("\n")


def read_stdin() -> str:
    """All of stdin, strictly UTF-8."""
    data = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"stdin: not UTF-8 at byte {error.start}, line {line}; convert it first") from None


def checked_text(text: str, where: str) -> str:
    """The text, refused when it has bytes that are no characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: not UTF-8 at character {error.start}") from None
    return text


def show_card(screen: Screen, run: Run, result: Result) -> None:
    """Print what a training came to, the numbers alone for a program, or only where the run is."""
    outcome = run.task.outcome(run, result)
    screen.object(outcome.facts | {"next": outcome.next})
    if screen.quiet:
        screen.line(outcome.facts["run"])
        return
    for line in [*outcome.lines, "Next:", *(f"  {command}" for command in outcome.next)]:
        screen.line(line)


def answer_all(screen: Screen, run: Run, text: str | None, options: dict[str, Any]) -> None:
    """Print an answer to every input in `text`."""
    if not text:
        raise UsageError(f"{run.path}: there is nothing to answer; give a text, or pipe one in")
    given = changed(options)
    unused = run.task.unused(given)
    if unused:
        flags = ", ".join(f"--{'n' if name == 'n_best' else name.replace('_', '-')}" for name in unused)
        raise UsageError(f"{run.path}: {flags} means nothing to a run of the task {run.task.name}; leave it out")
    answers = run.answers(run.task.inputs(text), **given)
    screen.object({"answers": [answer.to_dict() for answer in answers], "fallbacks": run.fallbacks})
    for answer in answers:
        for line in (answer.text, *(other["text"] for other in answer.details.get("others", ()))):
            screen.written(line)


def changed(options: dict[str, Any]) -> dict[str, Any]:
    """The options that somebody has set: a task has defaults of its own, of `temperature` and `max_tokens` too."""
    from regard.decoding.text import TextOptions

    defaults = {field.name: field.default for field in dataclasses.fields(TextOptions)}
    return {name: value for name, value in options.items() if name in OWN or value != defaults[name]}
