"""Where a command speaks: tables and lines for people, one JSON object for programs.

With `--json` only the object goes to stdout, and what people may want to see meanwhile goes to stderr.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from regard.terminal.table import COMMANDS, finite, show_table, visible


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
        if sys.stdout.isatty() and not self.quiet:
            self.line(text)

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
