"""Pairs: a text and its counterpart, from two files line by line or from two columns of any table.

Of a table the columns are as told, by their names, or its two columns. Of three columns without names where the third
is of another kind, as in the lists of Tatoeba and Anki (a sentence, its translation, who wrote them), the first two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from regard.data.account import Account
from regard.data.choices import OPEN, Choices, Missing
from regard.data.example import Examples, Pair
from regard.data.header import HEAD_ROWS
from regard.data.missing import Kept, rows_with
from regard.data.packed import Mapped, Packed
from regard.data.source import STDIN, read_lines, shown
from regard.data.table import Table, is_number
from regard.data.tabular import describe, open_table
from regard.errors import DataError, RegardError, UsageError

# Names of the two sides, the first of each pair read and the second written.
NAMES = (
    ("source", "target"),
    ("src", "tgt"),
    ("input", "output"),
    ("question", "answer"),
    ("prompt", "completion"),
    ("sentence1", "sentence2"),
    ("text", "summary"),
)
CERTAIN = NAMES[:3]  # what nobody calls a text and its label
MANY = 20
# Words by which the third column of a list of sentences is known: who wrote them, under which licence, how alike.
CREDIT = ("CC-BY", "CC BY", "Attribution", "tatoeba.org", "http")


@dataclass(frozen=True)
class Sides:
    """How pairs are to be read.

    source, target  columns of one table, by name or number from 1; None: told from the table.
    reverse         the second side is read and the first written.
    """

    source: str | None = None
    target: str | None = None
    reverse: bool = False


TOLD_BY_TABLE = Sides()


def read_pairs(
    source: str,
    target: str | None = None,
    *,
    sides: Sides = TOLD_BY_TABLE,
    missing: Missing = "refuse",
    choices: Choices = OPEN,
) -> Examples[Pair]:
    """The pairs of two line-aligned files, or of two columns of a table."""
    if target is None:
        table = open_table(source, choices, _known(sides))
        left, right, note = choose(table, sides)
    else:
        table, left, right, note = _aligned(source, target, choices), "source", "target", ""
    if sides.reverse:
        left, right = right, left
    kept = rows_with(table, {"source": left, "target": right}, {}, missing)
    return _examples(table, (left, right), kept, note, None if target is None else f"{source}, {target}")


def _examples(table: Table, columns: tuple[str, str], kept: Kept, note: str, both: str | None) -> Examples[Pair]:
    texts = {role: Mapped(table.cells[name], _text) for role, name in zip(("source", "target"), columns, strict=True)}
    account = Account(
        data=both or table.path,
        form="two files" if both else describe(table),
        target=columns[1],
        columns={} if both else dict(zip(("source", "target"), columns, strict=True)),
        ignored=[name for name in table.names if name not in columns],
        read=len(table),
        dropped=kept.dropped,
        first={role: column[int(kept.rows[0])] for role, column in texts.items()},
    )
    told = "; ".join(filter(None, [table.note, note, kept.told]))
    settings = {} if both else {"source": columns[0], "target": columns[1]}
    return Examples(
        Pair, {**texts, "where": table.places}, rows=kept.rows, note=told, settings=settings, account=account
    )


def choose(table: Table, sides: Sides) -> tuple[str, str, str]:
    """The columns of the two sides, and what had to be decided."""
    names = table.names
    source = None if sides.source is None else table.find("data.source", sides.source)
    target = None if sides.target is None else table.find("data.target", sides.target)
    if source is not None and source == target:
        raise UsageError(f"data.source and data.target are both column {source!r} of {shown(table.path)}")
    if source is not None or target is not None:
        rest = [name for name in names if name not in (source, target)]
        if (source is None or target is None) and len(rest) != 1:
            raise _unclear(table, "target" if target is None else "source")
        return source or rest[0], target or rest[0], ""
    lowered = {name.strip().lower(): name for name in names} if table.named else {}
    for one, other in NAMES:
        if one in lowered and other in lowered:
            return lowered[one], lowered[other], ""
    if len(names) == 2:
        return names[0], names[1], ""
    # Of columns without names a number may be anything: who wrote a pair is told by its words.
    texts = [name for name in names if not _is_credit(table, name) and not (table.named and _is_other(table, name))]
    if len(texts) == 2:
        others = ", ".join(name for name in names if name not in texts)
        return texts[0], texts[1], f"{'columns' if ',' in others else 'column'} {others} ignored: no side of a pair"
    raise _unclear(table, "source")


def is_of_pairs(table: Table, has_no_labels: bool) -> bool:
    """Whether a table is one of pairs: its columns are called so, or two of them are texts and none is a label."""
    names = {name.strip().lower() for name in table.names} if table.named else set()
    if any(one in names and other in names for one, other in CERTAIN):
        return True
    try:
        choose(table, TOLD_BY_TABLE)
    except RegardError:
        return False
    return has_no_labels and len(table.names) > 1


def _unclear(table: Table, role: str) -> RegardError:
    width = len(table.names)
    if width < 2:
        told = "1 column where a pair has 2; keep a TAB between its sides, or give two files"
        return DataError(f"{table.where(0)}: {told}")
    return UsageError(
        f"{shown(table.path)}: {width} columns where a pair has 2; its columns are {', '.join(table.names)}: say which "
        f"with data.source=NAME and data.target=NAME" + ("" if role == "source" else " (the other is told)")
    )


def _is_credit(table: Table, name: str) -> bool:
    """Whether a column says who wrote a pair, or under which licence."""
    cells = [cell for cell in table.cells[name][:HEAD_ROWS] if cell]
    return sum(any(word in cell for word in CREDIT) for cell in cells) > len(cells) / 2


def _is_other(table: Table, name: str) -> bool:
    """Whether a column is no side of a pair: numbers, or a few words for all of many rows."""
    cells = [cell.strip() for cell in table.cells[name][:HEAD_ROWS] if cell and cell.strip()]
    return all(map(is_number, cells)) or (len(cells) > MANY and len(set(cells)) <= len(cells) // MANY)


def _aligned(source: str, target: str, choices: Choices) -> Table:
    if source == target == STDIN:
        raise UsageError("both sides cannot be standard input: give two files, or one table")
    left, right = Packed(), Packed()
    n_source = n_target = 0
    for one, other in _lines(source, target, choices):
        n_source += one is not None
        n_target += other is not None
        left.append(one or "")
        right.append(other or "")
    if n_source != n_target:
        ended = source if n_source < n_target else target
        raise DataError(
            f"{shown(source)} has {n_source:,} lines and {shown(target)} {n_target:,}: {shown(ended)} ended first; "
            f"line {min(n_source, n_target) + 1:,} has no counterpart, make them line by line"
        )
    return Table(source, {"source": left, "target": right}, np.arange(1, len(left) + 1), form="two files")


def _lines(source: str, target: str, choices: Choices) -> Iterator[tuple[str | None, str | None]]:
    left, right = (read_lines(file, encoding=choices.encoding) for file in (source, target))
    return zip_longest(left, right)


def _known(sides: Sides) -> list[str]:
    told = [name for name in (sides.source, sides.target) if name is not None and not name.isdecimal()]
    return [name.strip().lower() for name in told] + [name for both in NAMES for name in both if name != "text"]


def _text(cell: str | None) -> str:
    return cell or ""
