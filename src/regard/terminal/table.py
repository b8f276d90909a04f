"""Tables and numbers for people: drawn by rich on a terminal, aligned plain text, never cut to a width, in a pipe."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

# C0 but \t and \n, DEL and C1; marks, embeddings, overrides and isolates of direction; line and paragraph separators.
COMMANDS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]"
)
STYLES = {"NO": "bold red", "yes": "green"}


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table. A column whose name ends in `#` holds numbers and is set to the right."""
    columns, title = [visible_line(name) for name in columns], visible_line(title)
    texts = [["" if cell is None else visible_line(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(columns, texts, title)
        return
    for line in ([title] if title else []) + aligned(columns, texts):
        print(line)


def aligned(columns: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Plain lines with two spaces between columns."""
    table = [[name.rstrip("#") for name in columns], *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if name.endswith("#") else cell.ljust(width)
            for cell, width, name in zip(row, widths, columns, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def human(count: float, unit: str = "") -> str:
    """A count in three digits.

    >>> human(124439808), human(65), human(1536, "B")
    ('124M', '65', '1.54kB')
    """
    for letter in ("", "k", "M", "G", "T"):
        if abs(count) < 999.5:
            return f"{count:.0f}{unit}" if not letter and float(count).is_integer() else f"{count:.3g}{letter}{unit}"
        count /= 1000
    return f"{count:.3g}P{unit}"


def power_of_ten(log_value: float) -> str:
    """exp(log_value) in three digits, also where it is too small for a float.

    >>> power_of_ten(-1.0), power_of_ten(-5000.0)
    ('0.368', '3.37e-2172')
    """
    if log_value == -math.inf:
        return "0"
    if log_value > -20:
        return f"{math.exp(log_value):.3g}"
    exponent = math.floor(log_value / math.log(10))
    return f"{math.exp(log_value - exponent * math.log(10)):.2f}e-{-exponent:02d}"


def visible(text: str) -> str:
    """Text that cannot command a terminal: control characters, which a model or a file may well hold, become U+FFFD.

    Those are C0 without tabs and line ends, C1, what turns the direction of writing round, what ends lines unseen, and
    halves of characters. Every string from data, runs and file names goes through here on its way to a terminal.

    >>> visible("a\\tb\\n\\x1b[2J \\x9b2J \\u202eb\\u2069")
    'a\\tb\\n\ufffd[2J \ufffd2J \ufffdb\ufffd'
    """
    return COMMANDS.sub("\ufffd", text)


def visible_line(text: str) -> str:
    """The same within one line, such as a cell of a table: ends of lines and tabs are spelt.

    >>> visible_line("two\\nlines")
    'two\\\\nlines'
    """
    return visible(text.replace("\n", "\\n").replace("\t", "\\t"))


def span(seconds: float) -> str:
    """A time in one or two units.

    >>> span(8), span(125), span(7300)
    ('8s', '2m 05s', '2h 01m')
    """
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02d}s"
    return f"{seconds // 3600}h {seconds % 3600 // 60:02d}m"


def _draw(columns: Sequence[str], rows: list[list[str]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for name in columns:
        table.add_column(name.rstrip("#"), justify="right" if name.endswith("#") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(table)


def finite(value: Any) -> Any:
    """`value` with what JSON cannot hold (infinities, not-a-number) as null."""
    if isinstance(value, dict):
        return {str(key): finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
