"""Records: the rows of a TSV, CSV or JSONL file, each with the number of its line.

TSV    columns between TABs. A quotation mark is a character like any other.
CSV    columns between commas; a cell in double quotes may hold commas, line ends and doubled quotes (RFC 4180).
JSONL  an object a line. Values other than strings are taken as JSON writes them: 1, true.
"""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat

from regard.data.decoding import LINE_LIMIT
from regard.data.packed import Packed
from regard.data.source import plain, read_lines, shown
from regard.errors import DataError

FORMS = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# Every row has a cell in every column: with ever new ones a small file would fill the memory.
MOST_COLUMNS = 1000


@dataclass(frozen=True)
class Records:
    """The rows of a file, by column.

    names    of the columns, where the file tells them for certain: the keys of JSONL.
    columns  the cells of each; None where an object has no such key, or null.
    lines    the number of the line on which each row begins.
    """

    path: str
    names: tuple[str, ...] | None
    columns: list[Packed]
    lines: array[int]

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, index: int) -> list[str | None]:
        """The cells of a row, in the order of the columns."""
        return [column[index] for column in self.columns]

    def where(self, index: int) -> str:
        """The place of a row, for messages."""
        return f"{shown(self.path)}, line {self.lines[index]}"


def read_records(path: str, most: int | None = None) -> Records:
    """The rows of a file, or the first `most`; blank lines are none. The name tells the form, else the first line."""
    source = read_lines(path)
    first = next(source)
    rows = chain([first], source)
    form = FORMS.get(plain(path).suffix.lower()) or _look(first)
    if form == "jsonl":
        return _objects(path, islice(enumerate(rows, start=1), most))
    cells = _commas(path, rows) if form == "csv" else ((n, row.split("\t")) for n, row in enumerate(rows, start=1))
    return _table(path, islice(((number, row) for number, row in cells if row not in ([], [""])), most))


def refuse_columns(count: int, where: str) -> None:
    """Refuse a file of more columns than anybody names."""
    if count > MOST_COLUMNS:
        raise DataError(f"{where}: more than {MOST_COLUMNS:,} different columns or keys; keep those that are asked for")


def _table(path: str, rows: Iterable[tuple[int, list[str]]]) -> Records:
    columns: list[Packed] = []
    lines = array("q")
    for number, row in rows:
        if not columns:
            refuse_columns(len(row), f"{shown(path)}, line {number}")
            columns = [Packed() for _ in row]
        if len(row) != len(columns):
            width = len(columns)
            raise DataError(f"{shown(path)}, line {number}: {len(row)} columns where line {lines[0]} has {width}")
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
        lines.append(number)
    if not columns:
        raise DataError(f"{shown(path)} holds nothing but blank lines")
    return Records(path, None, columns, lines)


def _look(first: str) -> str:
    if first.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in first else "csv"


def _commas(path: str, rows: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((row + "\n" for row in rows), strict=True)
    number = 1
    limit = csv.field_size_limit(LINE_LIMIT)
    try:
        for row in reader:
            yield number, row
            number = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{shown(path)}, line {number}: no good CSV ({error}); is a quote left open?") from None
    finally:
        csv.field_size_limit(limit)


def _objects(path: str, rows: Iterable[tuple[int, str]]) -> Records:
    columns: dict[str, Packed] = {}
    lines = array("q")
    for number, row in rows:
        if not row.strip():
            continue
        try:
            item = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{shown(path)}, line {number}: no good JSON ({error}); give one object a line") from None
        if not isinstance(item, dict):
            raise DataError(f"{shown(path)}, line {number}: {row.strip()[:20]!r} is no object; give one object a line")
        for name in item:
            if name not in columns:
                refuse_columns(len(columns) + 1, f"{shown(path)}, line {number}")
                columns[name] = Packed(repeat(None, len(lines)))
        for name, column in columns.items():
            column.append(_written(item.get(name)))
        lines.append(number)
    if not lines:
        raise DataError(f"{shown(path)} holds nothing but blank lines")
    return Records(path, tuple(columns), list(columns.values()), lines)


def _written(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
