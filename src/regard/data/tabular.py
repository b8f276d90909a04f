"""Tabular: any file, folder, address or value in memory as a `Table`.

CSV, TSV and other delimiters, JSON arrays and lines, Parquet, Arrow, Feather, Excel: a file, also .gz .xz .zst
a pattern such as part-*.parquet: all files that match, one after the other
a folder that `datasets` saved, also FOLDER#validation; hf:NAME, hf:NAME:CONFIG, hf:NAME#SPLIT
memory:NAME: a table that a caller holds (`held`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import ahead, columnar
from regard.data.cell import Listed
from regard.data.cells import Grid, read_cells
from regard.data.choices import OPEN, Choices
from regard.data.decoding import HEAD
from regard.data.delimiter import TOLD, Dialect, delimiter_named, sniffed, with_quotes
from regard.data.form import BINARY, NAMES, look
from regard.data.header import HEAD_ROWS, is_header
from regard.data.in_memory import columns_of
from regard.data.json_rows import read_json
from regard.data.packed import Column, Joined
from regard.data.source import files, is_pattern, named, opened, plain, shown
from regard.data.table import Table, as_time, is_number
from regard.errors import DataError

HUB, MEMORY = "hf:", "memory:"


_held: dict[str, Table] = {}


@contextmanager
def held(table: Table, name: str = "table") -> Iterator[str]:
    """An address under which a table in memory is found within the context, as a file is by its path."""
    address, number = f"{MEMORY}{name}", 2
    mine = replace(table, path=address)
    # Another thread may be looking for a free address as well: whoever comes first has it.
    while _held.setdefault(address, mine) is not mine:
        address, number = f"{MEMORY}{name}-{number}", number + 1
        mine = replace(table, path=address)
    try:
        yield address
    finally:
        del _held[address]


def is_held(data: str) -> bool:
    """Whether a table is, or was, one in memory."""
    return data.startswith(MEMORY)


def is_address(data: str) -> bool:
    """Whether a table is named by something other than a path."""
    return data.startswith((HUB, MEMORY))


def is_table_folder(data: str) -> bool:
    """Whether a path is a folder that `datasets` saved, perhaps with one of its parts named."""
    folder = Path(data.partition("#")[0])
    return folder.is_dir() and columnar.is_saved_dataset(folder)


def is_table(data: str, choices: Choices = OPEN) -> bool:
    """Whether data is a table by its name, its content or what somebody said; cells between TABs alone are no sign."""
    if is_address(data) or is_table_folder(data) or choices.form not in ("auto", "text"):
        return True
    if choices.form == "text" or Path(data).is_dir():
        return False
    seen = look(files(data)[0], choices.encoding)
    return seen.form in ("json", *BINARY) or seen.named == "csv"


def open_table(data: str, choices: Choices = OPEN, known: Collection[str] = (), most: int | None = None) -> Table:
    """The table that a path, a pattern or an address stands for.

    known  names of columns that somebody asks for: a first row that has one of them is a header.
    most   rows that are asked for; no more than those, and a few, are read of a text.
    """
    if is_held(data):
        if data not in _held:
            raise DataError(f"{data} was a table in memory, which is gone: give it again, or name a file")
        return _held[data]
    place, _, split = data.partition("#")
    if data.startswith(HUB):
        return _of_columns(data, columnar.load_from_hub(place, split or None), "Hugging Face data set")
    if is_table_folder(data):
        return _of_columns(data, columnar.read_saved_dataset(place, split or None), "Hugging Face data set")
    if Path(data).is_dir():
        raise DataError(f"{data} is a folder: name one file in it, or a pattern such as {Path(data) / '*.csv'}")
    if is_pattern(data):
        found = files(data) if most is None else files(data)[:1]
        return _joined(data, [_open_file(file, choices, known, most) for file in found])
    files(data)
    return _open_file(data, choices, known, most)


def read_table(path: str, choices: Choices = OPEN) -> Table:
    """The table of a file whose columns have names: those of a CSV stand in its first line."""
    table = open_table(path, replace(choices, header="yes") if choices.header == "auto" else choices)
    for name in table.names if table.unit == "line" else ():
        if is_number(name) or as_time(name) is not None:
            where = f"{shown(path)}, line {int(table.lines[0]) - 1}"
            raise DataError(f"{where}: {name!r} is no name of a column; begin the file with a line of names")
    return table


def table_of(data: Any, name: str = "table") -> Table:
    """The table of what somebody has in memory: columns, a frame, an Arrow table, a data set or rows.

    regard/data/in_memory.py says which. What it cannot be is refused; name: what it is called in messages.
    """
    if isinstance(data, Table):
        return data
    columns, is_named = columns_of(data, name)
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        told = ", ".join(f"{key} {len(column):,}" for key, column in columns.items())
        raise DataError(f"{name}: its columns are not equally long: {told}")
    if not sizes or not sizes.pop():
        raise DataError(f"{name} holds no rows")
    return _of_columns(name, columns, "table in memory", named=is_named)


def _of_columns(path: str, columns: Mapping[str, Column[Any]], form: str, named: bool = True) -> Table:
    n = len(next(iter(columns.values()), ()))
    if not n:
        raise DataError(f"{shown(path)} holds no rows")
    return Table(path, columns, np.arange(1, n + 1), "row", named, form)


def _open_file(path: str, choices: Choices, known: Collection[str], most: int | None = None) -> Table:
    form = choices.form
    if form in ("auto", "text"):
        seen = look(path, choices.encoding)
        if not seen.agrees and seen.named != "text" and choices.delimiter is None:
            raise seen.refusal()
        form = "csv" if seen.form == "text" else seen.form
    if form == "csv":
        return _delimited(path, choices, known, most)
    if form == "json":
        names, grid = read_json(path, choices.encoding, most)
        if names is None:
            return _headed(path, grid, choices, known, "JSON")
        return Table(path, dict(zip(names, grid.columns, strict=True)), grid.lines, form="JSON")
    if form == "excel":
        first, columns = columnar.read_excel(path, most)
        return _excel(path, first, columns, choices, known)
    return _of_columns(path, columnar.READERS[form](path, most), form.capitalize())


def _delimited(path: str, choices: Choices, known: Collection[str], most: int | None) -> Table:
    dialect = _dialect(path, choices)
    kind = {"\t": "TSV", ",": "CSV"}.get(dialect.delimiter)
    form = kind or f"CSV with {TOLD.get(dialect.delimiter, repr(dialect.delimiter))}"
    if most is None:
        grid = ahead.take((path, choices), partial(read_cells, path, dialect, choices.encoding))
    else:
        grid = read_cells(path, dialect, choices.encoding, most)
    return _headed(path, grid, choices, known, form)


def read_ahead(path: str, choices: Choices) -> None:
    """Begin to read a large CSV that will be opened soon."""
    if Path(path).is_file() and NAMES.get(plain(path).suffix.lower()) == "csv":
        read = partial(read_cells, path, _dialect(path, choices), choices.encoding)
        ahead.begin((path, choices), path, read)


def _dialect(path: str, choices: Choices) -> Dialect:
    with named(path), opened(path, choices.encoding) as stream:
        head = stream.peek(HEAD)[:HEAD]
    if choices.delimiter is not None:
        return with_quotes(head, delimiter_named(choices.delimiter))
    return sniffed(head, is_told=True, is_whole=len(head) < HEAD) or Dialect(",")


def _headed(path: str, grid: Grid, choices: Choices, known: Collection[str], form: str) -> Table:
    """The table of a grid whose first row may be names."""
    first = [column[0] for column in grid.columns]
    head = [list(column[1:HEAD_ROWS]) for column in grid.columns]
    why = {"yes": "told", "no": ""}.get(choices.header) if choices.header != "auto" else is_header(first, head, known)
    if not why:
        names = [str(number) for number in range(1, len(first) + 1)]
        return Table(path, dict(zip(names, grid.columns, strict=True)), grid.lines, named=False, form=form)
    names = _names(first, f"{shown(path)}, line {grid.lines[0]}")
    if len(grid.lines) == 1:
        raise DataError(f"{shown(path)} holds a header and nothing else: give rows below it")
    cells = {name: _below(column) for name, column in zip(names, grid.columns, strict=True)}
    note = f"line {grid.lines[0]} is taken as a header" if why == "look" else ""
    return Table(path, cells, grid.lines[1:], form=form, note=note)


def _below(column: Any) -> Column[Any]:
    """A column without its first cell."""
    return column.below() if hasattr(column, "below") else column[1:]


def _excel(path: str, first: list[str], columns: Sequence[Any], choices: Choices, known: Collection[str]) -> Table:
    head = [list(column[:HEAD_ROWS]) for column in columns]
    if choices.header == "no" or (choices.header == "auto" and not is_header(first, head, {*known, *_texts(first)})):
        whole = [Joined([Listed([top or None]), column]) for top, column in zip(first, columns, strict=True)]
        cells = {str(number): column for number, column in enumerate(whole, 1)}
        return replace(_of_columns(path, cells, "Excel"), named=False)
    names = _names(first, f"{path}, row 1")
    table = _of_columns(path, dict(zip(names, columns, strict=True)), "Excel")
    return replace(table, lines=np.arange(2, len(table) + 2))


def _texts(first: list[str]) -> list[str]:
    """A sheet without names above its columns is rare: its first row is one unless it holds numbers or long texts."""
    is_plain = all(cell and len(cell) <= 40 for cell in first)
    return [cell.strip().lower() for cell in first] if is_plain else []


def _names(first: Sequence[str | None], where: str) -> list[str]:
    names = [(cell or "").strip() or f"column {number}" for number, cell in enumerate(first, 1)]
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{where}: {count} columns are called {name!r}; rename all but one")
    return names


def _joined(pattern: str, tables: list[Table]) -> Table:
    """Tables with the same columns, one below the other."""
    first = tables[0]
    for table in tables[1:]:
        if table.names != first.names:
            raise DataError(
                f"{table.path} has the columns {', '.join(table.names)} and {first.path} {', '.join(first.names)}; "
                f"give files with the same columns"
            )
    if len(tables) == 1:
        return first
    cells = {name: Joined([table.cells[name] for table in tables]) for name in first.names}
    return _of_columns(pattern, cells, first.form, named=first.named)


def describe(table: Table) -> str:
    """What a table was read from, for people."""
    return table.form if table.named else f"{table.form} without a header"
