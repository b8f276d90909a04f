"""Tables as they are written, some rows at a time: what the rows so far have become is never changed again.

.csv .tsv     a header where the columns have names; texts as they are, lists as JSON
.jsonl        an object a line; numbers are numbers, lists are lists
.json         an array of such objects
.parquet .xlsx, and .gz .xz .zst behind any other: made of the finished file (regard/data/converted.py)
own form      of what is no table, such as CoNLL or lines of text
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.converted import EXCEL, PARQUET, written_suffix
from regard.data.unlabelled import OwnForm, Unlabelled
from regard.errors import UsageError

QUOTED = ('"', "\n", "\r")  # what a cell has in quotes alone, beside the mark between cells


class RowWriter(ABC):
    """Rows to text."""

    def begin(self, names: Sequence[str]) -> str:
        """What stands before the first row. names: of the columns, those of an answer last."""
        return ""

    @abstractmethod
    def rows(self, columns: Mapping[str, Sequence[Any]], first: int) -> str:
        """Some rows by column, the first of which has that number."""

    def end(self) -> str:
        """What stands after the last row."""
        return ""


@dataclass(frozen=True)
class Delimited(RowWriter):
    """Cells with a mark between them. header: whether the names of the columns stand in the first row."""

    mark: str = ","
    header: bool = True

    def begin(self, names: Sequence[str]) -> str:
        return self.rows({str(number): [name] for number, name in enumerate(names)}, 0) if self.header else ""

    def rows(self, columns: Mapping[str, Sequence[Any]], first: int) -> str:
        cells = [self._cells(column) for column in columns.values()]
        if len(cells) == 1:  # else a line with nothing in it would be no row
            cells = [[cell or '""' for cell in cells[0]]]
        return "".join(f"{line}\n" for line in map(self.mark.join, zip(*cells, strict=True)))

    def _cells(self, column: Sequence[Any]) -> Sequence[str]:
        """Values as cells, in quotes where they must be. Whole columns are looked at: mostly none must be."""
        texts = column if set(map(type, column)) == {str} else list(map(_cell, column))
        whole = "".join(texts)
        if not any(sign in whole for sign in (self.mark, *QUOTED)):
            return texts
        must = re.compile(f"[{re.escape(self.mark)}{''.join(QUOTED)}]").search
        return ['"' + text.replace('"', '""') + '"' if must(text) else text for text in texts]


@dataclass(frozen=True)
class JsonLines(RowWriter):
    """An object a line."""

    def rows(self, columns: Mapping[str, Sequence[Any]], first: int) -> str:
        return "".join(f"{line}\n" for line in _objects(columns))


@dataclass(frozen=True)
class JsonArray(RowWriter):
    """One array of objects, an object a line."""

    def begin(self, names: Sequence[str]) -> str:
        return "["

    def rows(self, columns: Mapping[str, Sequence[Any]], first: int) -> str:
        return "".join(f"{',' if number else ''}\n{line}" for number, line in enumerate(_objects(columns), first))

    def end(self) -> str:
        return "\n]\n"


@dataclass(frozen=True)
class OwnLines(RowWriter):
    """The form that the inputs came in. n_kept: columns before those of the answer."""

    form: OwnForm
    n_kept: int

    def rows(self, columns: Mapping[str, Sequence[Any]], first: int) -> str:
        names = list(columns)[self.n_kept :]
        rows = zip(*(columns[name] for name in names), strict=True)
        answers = (dict(zip(names, row, strict=True)) for row in rows)
        return "".join(self.form.written(number, answer) for number, answer in enumerate(answers, first))


def writer_for(path: Path, found: Unlabelled) -> RowWriter:
    """What writes a file of that name from answers to what was found."""
    suffix, own = written_suffix(path), found.own
    if suffix in (".csv", ".tsv", ".tab"):
        return Delimited("," if suffix == ".csv" else "\t", found.named)
    if suffix in (".jsonl", ".ndjson", *PARQUET, *EXCEL):
        return JsonLines()
    if suffix == ".json":
        return JsonArray()
    if own is not None and suffix in own.suffixes:
        return OwnLines(own, len(found.columns))
    also = "" if own is None else f", or as {own.told} in {' '.join(own.suffixes)}"
    raise UsageError(
        f"{path}: answers are written to .csv .tsv .jsonl .json .parquet .xlsx{also}; end the name with one, .gz "
        f"or .zst behind it to pack it"
    )


def writer_for_stream(found: Unlabelled, *, as_json: bool) -> RowWriter:
    """What writes to standard output: JSON lines for programs, else the inputs' own form, or a CSV."""
    if as_json:
        return JsonLines()
    return Delimited(",", found.named) if found.own is None else OwnLines(found.own, len(found.columns))


def _cell(value: Any) -> str:
    """A value as the text of a cell: nothing for None, lists as JSON."""
    if type(value) is str:
        return value
    return "" if value is None else repr(value) if type(value) is float else json.dumps(value, ensure_ascii=False)


def _objects(columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """Rows as objects of JSON."""
    for row in zip(*columns.values(), strict=True):
        yield json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
