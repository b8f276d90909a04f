"""Records: the rows of a TSV, CSV or JSONL file, each with the number of its line.

TSV    columns between TABs. A quotation mark is a character like any other.
CSV    columns between commas; a cell in double quotes may hold commas, line ends and doubled quotes (RFC 4180).
JSONL  an object a line. Values other than strings are taken as JSON writes them: 1, true.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from regard.data.source import LINE_LIMIT, plain, read_lines, shown
from regard.errors import DataError

FORMS = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@dataclass(frozen=True)
class Records:
    """The rows of a file.

    names  of the columns, where the file tells them for certain: the keys of JSONL.
    rows   cells in the order of the columns; None where an object has no such key, or null.
    lines  the number of the line on which each row begins.
    """

    path: str
    names: tuple[str, ...] | None
    rows: list[list[str | None]]
    lines: list[int]

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
    numbered = list(islice(((number, row) for number, row in cells if row not in ([], [""])), most))
    if not numbered:
        raise DataError(f"{shown(path)} holds nothing but blank lines")
    records = Records(path, None, [list(row) for _, row in numbered], [number for number, _ in numbered])
    width = len(records.rows[0])
    for index, row in enumerate(records.rows):
        if len(row) != width:
            raise DataError(f"{records.where(index)}: {len(row)} columns where line {records.lines[0]} has {width}")
    return records


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
    found: list[dict[str, str | None]] = []
    lines: list[int] = []
    for number, row in rows:
        if not row.strip():
            continue
        try:
            item = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{shown(path)}, line {number}: no good JSON ({error}); give one object a line") from None
        if not isinstance(item, dict):
            raise DataError(f"{shown(path)}, line {number}: {row.strip()[:20]!r} is no object; give one object a line")
        found.append({key: _written(value) for key, value in item.items()})
        lines.append(number)
    if not found:
        raise DataError(f"{shown(path)} holds nothing but blank lines")
    names = tuple(dict.fromkeys(key for item in found for key in item))
    return Records(path, names, [[item.get(name) for name in names] for item in found], lines)


def _written(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
