"""Rows of a CSV by Python's own reader, which takes a quote within a cell as a character; slower than `cells`."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from itertools import islice

import numpy as np

from regard.data.decoding import LINE_LIMIT, lines
from regard.data.delimiter import Dialect
from regard.data.packed import Packed
from regard.data.source import named, opened, shown
from regard.errors import DataError

# Every row has a cell in every column: with ever new ones a small file would fill the memory.
MOST_COLUMNS = 1000


def row_by_row(path: str, dialect: Dialect, encoding: str | None, most: int | None) -> tuple[list[Packed], np.ndarray]:
    """The columns, and the number of the line on which each row begins."""
    columns: list[Packed] = []
    begins = array("q")
    with named(path), opened(path, encoding) as stream:
        for number, row in islice(_split(path, stream, dialect), most):
            if not columns:
                refuse_columns(len(row), f"{shown(path)}, line {number}")
                columns = [Packed() for _ in row]
            if len(row) != len(columns):
                raise ragged(path, number, len(row), begins[0], len(columns))
            for column, cell in zip(columns, row, strict=True):
                column.append(cell)
            begins.append(number)
    return columns, np.frombuffer(begins, np.int64)


def _split(path: str, stream: io.BufferedReader, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    source = (line + "\n" for line in lines(stream, shown(path), advice="break it up"))
    reader = csv.reader(source, delimiter=dialect.delimiter, strict=True)
    number, limit = 1, csv.field_size_limit(LINE_LIMIT)
    try:
        for row in reader:
            if row not in ([], [""]):
                yield number, row
            number = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{shown(path)}, line {number}: no good CSV ({error}); is a quote left open?") from None
    finally:
        csv.field_size_limit(limit)


def ragged(path: str, line: int, found: int, first: int, width: int) -> DataError:
    columns = "1 column" if found == 1 else f"{found} columns"
    return DataError(
        f"{shown(path)}, line {line}: {columns} where line {first} has {width}; mend that line, or say what stands "
        f"between cells: data.delimiter"
    )


def refuse_columns(count: int, where: str) -> None:
    """Refuse a file of more columns than anybody names."""
    if count > MOST_COLUMNS:
        raise DataError(f"{where}: more than {MOST_COLUMNS:,} different columns or keys; keep those that are asked for")
