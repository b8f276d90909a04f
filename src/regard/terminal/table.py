"""Tables and numbers for people: fitted to a terminal, and in a pipe plain text that is never cut to a width."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from regard.terminal.label import padded, width, wrapped

# C0 but \t and \n, DEL and C1; marks, embeddings, overrides and isolates of direction; line and paragraph separators.
COMMANDS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]"
)
STYLES = {"NO": "bold red", "yes": "green"}
GAP, INDENT = 2, 4
LONG, READABLE = 24, 32  # columns of a text that may be folded, and those that it keeps at least beside others
DIVIDED = 3  # columns that rich sets between two


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table. A column whose name ends in `#` holds numbers and is set to the right."""
    columns, title = [visible_line(name) for name in columns], visible_line(title)
    texts = [["" if cell is None else visible_line(str(cell)) for cell in row] for row in rows]
    most = width_of(sys.stdout)
    if most is not None and _has_room(columns, texts, most):
        _draw(columns, texts, title)
        return
    lines = aligned(columns, texts) if most is None else fitted(columns, texts, most)
    for line in ([title] if title and most is None else wrapped(title, most or 0) if title else []) + lines:
        print(line)


def width_of(stream: TextIO) -> int | None:
    """How wide a terminal is; None of a pipe."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def aligned(columns: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Plain lines with two spaces between columns."""
    widths = _widths(columns, rows)
    lines = []
    for row in [[name.rstrip("#") for name in columns], *rows]:
        cells = [
            padded(cell, size, right=name.endswith("#")) for cell, size, name in zip(row, widths, columns, strict=True)
        ]
        lines.append((" " * GAP).join(cells).rstrip())
    return lines


def fitted(columns: Sequence[str], rows: list[list[str]], most: int, key: int = 0) -> list[str]:
    """Lines of at most so many columns that leave nothing out.

    What has no room beside the rest goes below, in further tables that begin with the column `key`; long texts are
    folded below their rows.

    >>> fitted(["a", "b#", "c#"], [["x", "123", "4567"]], 7)
    ['a    b', 'x  123', '', 'a     c', 'x  4567']
    """
    widths = _widths(columns, rows)
    if sum(widths) + GAP * (len(columns) - 1) <= most:
        return aligned(columns, rows)
    folded = _folded(columns, widths, key)
    lines: list[str] = []
    tables = _side_by_side([place for place in range(len(columns)) if place not in folded], widths, most, key)
    for table in tables:
        head, *body = aligned([columns[place] for place in table], [[row[place] for place in table] for row in rows])
        lines += [*([""] if lines else []), head]
        for line, row in zip(body, rows, strict=True):
            below = [row[place] for place in folded if row[place]] if table is tables[-1] else []
            lines.append(line)
            lines += [f"{' ' * INDENT}{part}" for text in below for part in wrapped(text, max(1, most - INDENT))]
    return lines


def _side_by_side(places: list[int], widths: list[int], most: int, key: int) -> list[list[int]]:
    """Which columns stand in which table: as many as have room, one beside the key at least."""
    tables: list[list[int]] = [[]]
    for place in places:
        taken = sum(widths[one] + GAP for one in tables[-1]) + widths[place]
        is_begun = any(one != key for one in tables[-1])
        if is_begun and taken > most and place != key:
            tables.append([key])
        tables[-1].append(place)
    return tables


def _widths(columns: Sequence[str], rows: list[list[str]]) -> list[int]:
    table = [[name.rstrip("#") for name in columns], *rows]
    return [max(width(row[place]) for row in table) for place in range(len(columns))]


def _folded(columns: Sequence[str], widths: list[int], key: int = 0) -> list[int]:
    """The columns of long texts."""
    texts = (place for place, name in enumerate(columns) if place != key and not name.endswith("#"))
    return [place for place in texts if widths[place] > LONG]


def _has_room(columns: Sequence[str], rows: list[list[str]], most: int) -> bool:
    """Whether a table can stand as it is, its long texts folded within their columns."""
    widths = _widths(columns, rows)
    folded = _folded(columns, widths)
    least = [min(size, READABLE) if place in folded else size for place, size in enumerate(widths)]
    return sum(least) + DIVIDED * (len(columns) - 1) <= most


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
    folded = _folded(columns, _widths(columns, rows))
    for place, name in enumerate(columns):
        side = "right" if name.endswith("#") else "left"
        table.add_column(name.rstrip("#"), justify=side, overflow="fold", no_wrap=place not in folded)
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
