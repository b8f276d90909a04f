"""A sitting in a terminal, screen after screen: prose as it was written, code, and what the code has shown."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from typing import TextIO

from regard.explain.render import terminal
from regard.explain.render.cells.paper import CODES
from regard.lectures.execution import Output, SatCell, SatScreen
from regard.terminal.label import prose, wrapped
from regard.terminal.table import visible

WIDEST = 100
# Lines that stay as they are: of tables, formulas and headings.
FIXED = re.compile(r"\||\$\$|#+ ")
LISTED = re.compile(r"(?:[-*]|\d+\.) ")
FENCE = "```"
INDENT = "    "


class Printer:
    """Prints to a stream: as wide as a terminal, in bold where it has that, and plain in a pipe."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self._is_terminal = stream, stream.isatty()
        columns = shutil.get_terminal_size((WIDEST, 24)).columns if self._is_terminal else WIDEST
        self._width = max(terminal.LEAST_WIDTH, min(columns, WIDEST))
        self._styled = self._is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def screen(self, sat: SatScreen, of: int, solutions: bool) -> None:
        """One of so many screens. solutions: whether those of exercises are printed."""
        if sat.number > 1:
            self._line()
        self._line(self._style(f"{sat.number}/{of}  {prose(sat.screen.title)}", "head"))
        for cell in sat.cells:
            if solutions or not cell.cell.is_solution:
                self._line()
                self._cell(cell)
            elif cell.cell.is_code:
                self._line(self._style("(a solution; --solutions prints it)", "faint"))

    def _cell(self, sat: SatCell) -> None:
        if not sat.cell.is_code:
            for line in paragraphs(sat.cell.source, self._width):
                self._line(line)
            return
        for line in sat.cell.source.splitlines():
            self._line(self._style(f"{INDENT}{visible(line)}".rstrip(), "faint"))
        for output in sat.outputs:
            self._line()
            self._output(output)

    def _output(self, output: Output) -> None:
        if output.kind == "view":
            terminal.show(output.value, self.stream)
        elif output.kind == "svg":
            self._line("(a drawing; --html FILE shows it)")
        else:
            for line in output.value.rstrip("\n").split("\n"):
                self._line(visible(line))

    def _style(self, text: str, style: str) -> str:
        return f"\x1b[{CODES[style]}m{text}\x1b[0m" if self._styled and text else text

    def _line(self, text: str = "") -> None:
        print(text, file=self.stream, flush=self._is_terminal)


def paragraphs(source: str, width: int) -> Iterator[str]:
    """Markdown in lines of at most so many columns where that means the same; tables, code and formulas as they are.

    >>> list(paragraphs("one\\ntwo three\\n\\n- four five", 9))
    ['one two', 'three', '', '- four', '  five']
    """
    held: list[str] = []
    in_code = False
    for line in prose(source).split("\n"):
        is_fence = line.startswith(FENCE)
        # An indented line goes on with the item of a list above it.
        is_fixed = in_code or is_fence or bool(FIXED.match(line)) or (line.startswith("  ") and not held)
        if is_fixed or not line.strip() or LISTED.match(line):
            yield from _filled(held, width)
            held = []
        in_code ^= is_fence
        if line.strip() and not is_fixed:
            held.append(line.strip())
        elif not is_fence:
            yield line
    yield from _filled(held, width)


def _filled(lines: list[str], width: int) -> list[str]:
    if not lines:
        return []
    mark = LISTED.match(lines[0])
    first = mark[0] if mark else ""
    found = wrapped(" ".join(lines).removeprefix(first), width - len(first))
    return [first + found[0], *(" " * len(first) + line for line in found[1:])]
