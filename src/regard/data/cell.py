"""Cell: a value of any table as the text of a cell; None is a value that there is not."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from regard.data.packed import AT_ONCE, Column, Packed

ABSENT = ("NAType", "NaTType")  # how pandas calls what there is not


def cell_of(value: Any) -> str | None:
    """A value as a table of text would hold it.

    A whole number is written without a point: a column of such that lacks a value is one of floats elsewhere.

    >>> cell_of(2.0), cell_of(0.5), cell_of(True), cell_of(float("nan")), cell_of(["a"])
    ('2', '0.5', 'true', None, '["a"]')
    """
    if value is None or isinstance(value, str):
        return value
    if type(value).__name__ in ABSENT:
        return None
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, Mapping) or _is_list(value):
        return json.dumps(_plain(value), ensure_ascii=False)
    return str(value)


def raw_of(value: Any) -> Any:
    """A value as JSON has it: numbers and lists as they are, what JSON does not know as the text of a cell.

    >>> raw_of(2.0), raw_of(float("nan")), raw_of(("a", 1)), raw_of(datetime.date(2024, 1, 31))
    (2.0, None, ['a', 1], '2024-01-31')
    """
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value == value else None
    return _plain(value) if isinstance(value, Mapping) or _is_list(value) else cell_of(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or hasattr(value, "tolist")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if _is_list(value):
        return [_plain(one) for one in (value.tolist() if hasattr(value, "tolist") else value)]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


class Listed(Column[Any]):
    """The values of a column that somebody has in memory, each as a cell when it is asked for."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> str | None:
        return cell_of(self.values[row])

    def raw(self, rows: np.ndarray) -> Iterator[Any]:
        return (raw_of(self.values[row]) for row in rows.tolist())


class Typed(Packed):
    """Cells of a file that tells numbers and lists from texts; `raw` gives them back as such."""

    def __init__(self, texts: Iterable[str | None] = ()) -> None:
        self._kinds = bytearray()
        super().__init__(texts)

    def append(self, text: str | None, value: Any = "") -> None:
        """A cell, and the value that it was made of."""
        super().append(text)
        is_float = isinstance(value, float)
        self._kinds.append(2 if is_float else 1 if isinstance(value, bool | int | list | tuple | Mapping) else 0)

    def raw(self, rows: np.ndarray) -> Iterator[Any]:
        for row, cell in zip(rows.tolist(), self.at(rows), strict=True):
            kind = self._kinds[row]
            if cell is None or not kind:
                yield cell
            else:
                yield float(cell) if kind == 2 else json.loads(cell)


class Classed(Column[Any]):
    """A column of numbers that stand for names, or of lists of such, as Hugging Face keeps classes."""

    def __init__(self, values: Column[Any], names: Sequence[str]) -> None:
        self.values, self.names = values, names

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> str | None:
        return self._named(self.values.value(row))

    def __iter__(self) -> Iterator[str | None]:
        return map(self._named, self.values)

    def _named(self, cell: str | None) -> str | None:
        if cell is None:
            return None
        found = json.loads(cell)
        if isinstance(found, list):
            return json.dumps([self._name(one) for one in found], ensure_ascii=False)
        return self._name(found)

    def _name(self, number: Any) -> str | None:
        """-1 is how that library writes that there is no label."""
        in_list = isinstance(number, int) and 0 <= number < len(self.names)
        return self.names[number] if in_list else None if number == -1 else str(number)


class ArrowColumn(Column[Any]):
    """A column of an Arrow table, in memory or mapped from its file."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> str | None:
        return cell_of(self.values[row].as_py())

    def __iter__(self) -> Iterator[str | None]:
        for first in range(0, len(self), AT_ONCE):
            yield from map(cell_of, self.values.slice(first, AT_ONCE).to_pylist())

    def at(self, rows: np.ndarray) -> Iterator[str | None]:
        return map(cell_of, self._taken(rows))

    def raw(self, rows: np.ndarray) -> Iterator[Any]:
        return map(raw_of, self._taken(rows))

    def _taken(self, rows: np.ndarray) -> list[Any]:
        is_run = len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1
        return (self.values.slice(int(rows[0]), len(rows)) if is_run else self.values.take(rows)).to_pylist()
