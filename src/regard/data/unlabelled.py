"""Unlabelled: what a file holds for a run to answer, inputs in their order, what stands beside each, and where it is.

    table            a column is read; all columns are kept beside the answers
    plain text       a line is an input
    CoNLL            a sentence is an input (regard/data/conll_lines.py)

A target is not asked for. Cells lie in memory or in a file without a name (regard/data/table.py), and are made a few
thousand at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from regard.data.choices import Choices, Missing
from regard.data.header import mean_length
from regard.data.kind import Head
from regard.data.missing import rows_with
from regard.data.packed import Chosen, Column, Mapped, Packed, Places
from regard.data.source import files, read_lines, shown
from regard.data.table import Table
from regard.data.tabular import open_table
from regard.errors import UsageError

HEAD_ROWS = 1000  # rows by which the longest column is told


@dataclass(frozen=True)
class OwnForm:
    """The form that a file has which is no table, and in which its answers can be written as well.

    told      its name. suffixes: of files that have it.
    written   from the number of an input and the columns that its answer adds to the text for it, line end included.
    """

    told: str
    suffixes: tuple[str, ...]
    written: Callable[[int, Mapping[str, Any]], str]


@dataclass(frozen=True)
class Role:
    """The column that a run reads of a table.

    setting  by which it is told, such as "text". told: its name or number, where somebody says it.
    own      the column that the run was trained on. usual: how such columns are called.
    """

    setting: str
    told: str | None = None
    own: str | None = None
    usual: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Inputs without their targets.

    inputs   what a run answers, one after the other.
    columns  what is kept beside each answer.
    places   where each stands, for messages.
    named    whether the columns have names, and not numbers alone.
    own      the file's own form, where it is no table.
    mark     what an input is known again by, where it does not stand in the columns.
    read     the column whose texts are the inputs, where they are that of one as it is.
    notes    what had to be decided.
    """

    inputs: Column[Any]
    columns: Mapping[str, Column[Any]]
    places: Column[str]
    named: bool = True
    own: OwnForm | None = None
    mark: Callable[[Any], bytes] | None = None
    read: str | None = None
    notes: Sequence[str] = field(default=())

    def __len__(self) -> int:
        return len(self.inputs)

    def part(self, rows: np.ndarray) -> Asked:
        """Some of the inputs, with what is kept beside them."""
        columns = {name: list(column.raw(rows)) for name, column in self.columns.items()}
        texts = [] if self.read is None else columns[self.read]
        # A cell that was a text is that text, which need not be made twice.
        is_made = set(map(type, texts)) == {str}
        return Asked(texts if is_made else list(self.inputs.at(rows)), columns)

    def release(self) -> None:
        """Let go of what was read so far."""
        for column in (self.inputs, *self.columns.values()):
            column.release()

    def digest(self, part: Asked) -> str:
        """SHA-256 of some inputs and of all that is kept beside them."""
        found = hashlib.sha256(json.dumps(part.columns).encode())
        if self.mark is not None:
            for one in map(self.mark, part.inputs):
                found.update(hashlib.sha256(one).digest())
        return found.hexdigest()


@dataclass(frozen=True, eq=False)
class Asked:
    """Some inputs in memory. columns: what is kept beside them."""

    inputs: list[Any]
    columns: dict[str, list[Any]]

    def beside(self, answers: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[Any]]:
        """The columns of the inputs, then those of their answers; of an input with several rows each has its own."""
        rows = [row for of_one in answers for row in of_one]
        columns = self.columns
        if len(rows) != len(answers) or any(len(of_one) != 1 for of_one in answers):
            counts = [len(of_one) for of_one in answers]
            columns = {name: list(chain.from_iterable(map(repeat, column, counts))) for name, column in columns.items()}
        own = list(rows[0]) if rows else []
        names = free_names(list(columns), own)
        return columns | {name: [row[key] for row in rows] for name, key in zip(names, own, strict=True)}


class Items(Column[Any]):
    """Values that are in memory as they are."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> Any:
        return self.values[row]


def read_unlabelled(data: str, role: Role, choices: Choices, missing: Missing) -> Unlabelled:
    """The texts of a column of a table, or of the lines of a plain text."""
    head = head_of(data, role, choices)
    if not head.has_columns:
        return _of_lines(data, role.setting, choices)
    return of_table(open_table(data, choices, head.known), role, missing)


def head_of(data: str, role: Role, choices: Choices) -> Head:
    """What can be told of data before it is read."""
    names = [name for name in (role.told, role.own, *role.usual) if name is not None and not name.isdecimal()]
    head = Head(data, choices, [name.strip().lower() for name in names])
    head.refuse_disagreement()
    return head


def of_table(
    table: Table, role: Role, missing: Missing, make: Callable[[int, str | None], Any] | None = None
) -> Unlabelled:
    """The rows of a table that have an input. make: from the number of a row and its cell to the input."""
    name = choose_input(table, role)
    kept = rows_with(table, {role.setting: name}, {}, missing)
    # The numbers of all rows of a long table are many bytes, which are needed only where rows are left out.
    some = table.taken(kept.rows) if len(kept.rows) < len(table) else table
    inputs: Column[Any] = Mapped(some.cells[name], _text)
    read = name if make is None else None
    if make is not None:
        inputs = Numbered(some.cells[name], kept.rows if some is not table else None, make)
    other = f"{name} is read; the run was trained on {role.own}" if role.own not in (None, name) else ""
    notes = [note for note in (table.note, other, kept.told) if note]
    told = [f"{shown(table.path)}: {note}" for note in notes]
    return Unlabelled(inputs, some.cells, some.places, named=table.named, read=read, notes=told)


@dataclass(frozen=True, eq=False)
class Numbered(Column[Any]):
    """Inputs that are made of the cells of a column, with the number of the row that each stands in.

    rows: those numbers, None where no row is left out.
    """

    cells: Column[Any]
    rows: np.ndarray | None
    make: Callable[[int, str | None], Any]

    def __len__(self) -> int:
        return len(self.cells)

    def value(self, row: int) -> Any:
        return self.make(row if self.rows is None else int(self.rows[row]), self.cells.value(row))

    def at(self, rows: np.ndarray) -> Iterator[Any]:
        numbers = rows if self.rows is None else self.rows[rows]
        return map(self.make, numbers.tolist(), self.cells.at(rows))

    def release(self) -> None:
        self.cells.release()


def choose_input(table: Table, role: Role, advice: str | None = None) -> str:
    """The column that a run reads: as told, as in training, by its name, or the only one, or the longest.

    advice: what to do where none of these tells it, of a caller who says no settings.
    """
    if role.told is not None:
        return table.find(f"data.{role.setting}", role.told)
    if role.own is not None and role.own in table.cells:
        return role.own
    lowered = {name: name.strip().lower() for name in table.names} if table.named else {}
    for usual in role.usual:
        found = [name for name, low in lowered.items() if low == usual]
        if len(found) == 1:
            return found[0]
    if len(table.names) == 1:
        return table.names[0]
    head = zip(table.names, table.head(HEAD_ROWS), strict=True)
    lengths = sorted(((mean_length(cells), name) for name, cells in head), reverse=True)
    if 2 * lengths[1][0] <= lengths[0][0]:
        return lengths[0][1]
    raise UsageError(
        f"{shown(table.path)}: the run reads the column {role.own or role.setting!r}, and the table has "
        f"{', '.join(table.names)}; {advice or f'say which with --set data.{role.setting}=NAME'}"
    )


def _of_lines(data: str, name: str, choices: Choices) -> Unlabelled:
    """The lines of a plain text. An empty one is an input too, so that answers stand on the lines of their inputs."""
    texts = Packed(line for file in files(data) for line in read_lines(file, encoding=choices.encoding))
    places = Places(data, np.arange(1, len(texts) + 1))
    own = OwnForm("lines", (".txt",), lambda _, answer: f"{_one_line(answer)}\n")
    note = f"{shown(data)} is plain text: {len(texts):,} lines, an input each"
    return Unlabelled(texts, {name: texts}, places, own=own, notes=[note])


def _one_line(answer: Mapping[str, Any]) -> str:
    text = str(next(iter(answer.values())))
    return text.replace("\r", " ").replace("\n", " ")


def limited(found: Unlabelled, most: int | None) -> Unlabelled:
    """The first of the inputs."""
    if most is None or most >= len(found):
        return found
    rows = np.arange(most)
    columns = {name: Chosen(column, rows) for name, column in found.columns.items()}
    return replace(found, inputs=Chosen(found.inputs, rows), columns=columns)


def free_names(taken: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Names for further columns; one that is taken gets a number.

    >>> free_names(["text", "answer"], ["answer", "probability"])
    ['answer_2', 'probability']
    """
    used, found = set(taken), list[str]()
    for name in wanted:
        number, own = 2, name
        while own in used:
            own, number = f"{name}_{number}", number + 1
        used.add(own)
        found.append(own)
    return found


def _text(cell: str | None) -> str:
    return cell or ""
