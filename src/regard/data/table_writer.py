"""Tables as they are written, some rows at a time: what the rows so far have become is never changed again.

.csv .tsv     a header where the columns have names; texts as they are, lists as JSON
.jsonl        an object a line; numbers are numbers, lists are lists
.json         an array of such objects
.parquet      by pyarrow, from the lines of a .jsonl (regard/data/parquet_writer.py)
own form      of what is no table, such as CoNLL or lines of text
"""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.unlabelled import OwnForm, Unlabelled
from regard.errors import UsageError

PARQUET = (".parquet", ".pq")
PLAIN = frozenset({str, int, float, type(None)})


class RowWriter(ABC):
    """Rows to text. names: of the columns, those of an answer last."""

    def begin(self, names: Sequence[str]) -> str:
        """What stands before the first row."""
        return ""

    @abstractmethod
    def rows(self, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int) -> str:
        """Some rows, the first of which has that number."""

    def end(self) -> str:
        """What stands after the last row."""
        return ""


@dataclass(frozen=True)
class Delimited(RowWriter):
    """Cells with a mark between them. header: whether the names of the columns stand in the first row."""

    mark: str = ","
    header: bool = True

    def begin(self, names: Sequence[str]) -> str:
        return self.rows(names, [names], 0) if self.header else ""

    def rows(self, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int) -> str:
        text = io.StringIO(newline="")
        # Mostly there is nothing but texts and numbers, and then rows go in as they are.
        is_plain = {type(one) for row in rows for one in row} <= PLAIN
        csv.writer(text, delimiter=self.mark, lineterminator="\n").writerows(rows if is_plain else map(_cells, rows))
        return text.getvalue()


@dataclass(frozen=True)
class JsonLines(RowWriter):
    """An object a line."""

    def rows(self, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int) -> str:
        return "".join(f"{_object(names, row)}\n" for row in rows)


@dataclass(frozen=True)
class JsonArray(RowWriter):
    """One array of objects, an object a line."""

    def begin(self, names: Sequence[str]) -> str:
        return "["

    def rows(self, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int) -> str:
        return "".join(f"{',' if first + number else ''}\n{_object(names, row)}" for number, row in enumerate(rows))

    def end(self) -> str:
        return "\n]\n"


@dataclass(frozen=True)
class OwnLines(RowWriter):
    """The form that the inputs came in. n_kept: columns before those of the answer."""

    form: OwnForm
    n_kept: int

    def rows(self, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int) -> str:
        answers = (dict(zip(names[self.n_kept :], row[self.n_kept :], strict=True)) for row in rows)
        return "".join(self.form.written(number, answer) for number, answer in enumerate(answers, first))


def writer_for(path: Path, found: Unlabelled) -> RowWriter:
    """What writes a file of that name from answers to what was found."""
    suffix, own = path.suffix.lower(), found.own
    if suffix in (".csv", ".tsv", ".tab"):
        return Delimited("," if suffix == ".csv" else "\t", found.named)
    if suffix in (".jsonl", ".ndjson", *PARQUET):
        return JsonLines()
    if suffix == ".json":
        return JsonArray()
    if own is not None and suffix in own.suffixes:
        return OwnLines(own, len(found.columns))
    also = "" if own is None else f", or as {own.told} in {' '.join(own.suffixes)}"
    raise UsageError(f"{path}: answers are written to .csv .tsv .jsonl .json .parquet{also}; end the name with one")


def writer_for_stream(found: Unlabelled, *, as_json: bool) -> RowWriter:
    """What writes to standard output: JSON lines for programs, else the inputs' own form, or a CSV."""
    if as_json:
        return JsonLines()
    return Delimited(",", found.named) if found.own is None else OwnLines(found.own, len(found.columns))


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


def _cells(row: Sequence[Any]) -> list[Any]:
    """Values as cells: csv writes texts and numbers by itself, and nothing for None."""
    return [one if type(one) in PLAIN else json.dumps(one, ensure_ascii=False) for one in row]


def _object(names: Sequence[str], row: Sequence[Any]) -> str:
    return json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
