"""What somebody has in memory as columns: mappings, frames, Arrow tables, data sets, arrays, and rows of any kind.

{"text": [...], "label": [...]}      columns by name
a frame of pandas or polars          its columns; an index of times is one of them
an Arrow table, `datasets.Dataset`   their columns, classes by name
["a text", ...]                      a column `text`; so are a Series and an array of texts
[("a text", "its label"), ...]       columns 1, 2 and so on; also (source, target) and (words, tags)
[{"text": ..., "label": ...}, ...]   columns by name, a cell that a row lacks being none
an iterator of such rows             read to its end
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from regard.data import columnar
from regard.data.cell import ABSENT, Listed
from regard.data.packed import Column
from regard.data.table import Lazy
from regard.errors import DataError, UsageError

KINDS = (
    "a list of texts, a list of tuples such as (text, label), a list of mappings, a mapping of columns, a frame, an "
    "Arrow table or a data set"
)
TIME = "time"  # what an index of times is called that has no name
SHOWN = 40  # characters of a value in a message


def is_frame(data: Any) -> bool:
    """Whether something is a table by itself: columns by name, a frame, an Arrow table, a data set."""
    return isinstance(data, Mapping) or _has(data, "column_names", "num_rows") or _has(data, "columns", "shape")


def is_listed(data: Any) -> bool:
    """Whether something holds several values, one after the other: a list, an array, a Series or an iterator."""
    return isinstance(data, Iterable) and not isinstance(data, str | bytes | bytearray | Mapping) and not is_frame(data)


def described(value: Any) -> str:
    """What a value is, for a message.

    >>> described(None), described(5), described(["a"]), described("")
    ('None', 'the number 5', 'a list', 'an empty text')
    """
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return f"the number {value!r}"
    if isinstance(value, str):
        return f"the text {value[:SHOWN]!r}" if value else "an empty text"
    if isinstance(value, bytes | bytearray):
        return "bytes"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def columns_of(data: Any, name: str) -> tuple[Mapping[str, Column[Any]], bool]:
    """The columns of what somebody has, and whether they have names of their own. name: of the whole, for messages."""
    if _has(data, "column_names", "features", "num_rows"):
        return columnar.dataset_columns(data), True
    if _has(data, "column_names", "schema"):
        return columnar.arrow_columns(data), True
    if _has(data, "columns", "shape"):
        return _framed(data), True
    if isinstance(data, Mapping):
        return {str(key): Listed(_column(values, f"{name}: {key}")) for key, values in data.items()}, True
    if isinstance(data, tuple) and data and all(_is_column(one) for one in data):
        raise UsageError(
            f"{name}: a tuple of columns cannot be told from rows; give them by name, such as "
            f'{{"text": X, "label": y}}, or as list(zip(X, y))'
        )
    rows = rows_of(data, name)
    if not len(rows):
        raise DataError(f"{name} holds no rows")
    return _of_rows(rows, name)


def rows_of(data: Any, name: str) -> Sequence[Any]:
    """The values of a list, of an array with one axis, of a Series or of an iterator."""
    if not is_listed(data):
        raise UsageError(f"{name}: expected {KINDS}, found {described(data)}")
    if type(data).__module__.partition(".")[0] == "torch":
        raise UsageError(f"{name}: expected texts or rows, found a tensor; build models on tensors with regard.build")
    if getattr(data, "ndim", 1) != 1:
        shape = " x ".join(map(str, data.shape))
        raise UsageError(f"{name}: expected an array with one axis, found {shape}; give a column of it")
    return listed(data)


def listed(values: Any) -> Sequence[Any]:
    """Values as a sequence of Python's own; times of numpy as times."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "M" and hasattr(values, "astype"):
        return [None if str(one) == "NaT" else one for one in values.astype("datetime64[us]").tolist()]
    for method in ("to_list", "tolist"):
        if hasattr(values, method):
            return getattr(values, method)()
    # A list of the caller's may change after it was handed over.
    return values if isinstance(values, tuple) else list(values)


def _framed(frame: Any) -> dict[str, Column[Any]]:
    """The columns of a frame, before them an index that is one of times."""
    names = [str(name) for name in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"the frame has {names.count(name)} columns called {name!r}; rename all but one")
    # A column that nobody reads is not turned into values of Python's own.
    lazily = {str(name): Lazy(partial(_frame_column, frame, name), len(frame)) for name in frame.columns}
    columns: dict[str, Column[Any]] = dict(lazily)
    index = getattr(frame, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") != "M":
        return columns
    called = str(getattr(index, "name", None) or TIME)
    return columns if called in columns else {called: Listed(listed(index)), **columns}


def _frame_column(frame: Any, name: Any) -> Column[Any]:
    return Listed(listed(frame[name]))


def _of_rows(rows: Sequence[Any], name: str) -> tuple[dict[str, Column[Any]], bool]:
    # A text that there is not, as in a Series with holes, is a matter of data.missing.
    first = next((row for row in rows if not _is_hole(row)), None)
    if isinstance(first, Mapping):
        _require(rows, name, Mapping, "a mapping")
        names = dict.fromkeys(str(key) for row in rows for key in row)
        plain = [{str(key): value for key, value in row.items()} for row in rows]
        return {key: Listed([row.get(key) for row in plain]) for key in names}, True
    if isinstance(first, str):
        _require([first if _is_hole(row) else row for row in rows], name, str, "a text")
        return {"text": Listed(rows)}, True
    if isinstance(first, tuple | list):
        _require(rows, name, (tuple, list), "a tuple")
        for number, row in enumerate(rows, 1):
            if len(row) != len(first):
                raise DataError(f"{name}, row {number}: {len(row)} values, and the first row has {len(first)}")
        return {str(place + 1): Listed([row[place] for row in rows]) for place in range(len(first))}, False
    raise DataError(f"{name}, row 1: expected a text, a mapping or a tuple, found {described(rows[0])}")


def _is_hole(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ABSENT


def _require(rows: Sequence[Any], name: str, kind: type | tuple[type, ...], called: str) -> None:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, kind):
            raise DataError(f"{name}, row {number}: expected {called} as in the first row, found {described(row)}")


def _column(values: Any, name: str) -> Sequence[Any]:
    if is_frame(values):
        raise UsageError(f"{name} is a table of its own; give one table, and what is held out as valid=")
    if not is_listed(values):
        raise UsageError(f"{name}: expected the values of a column in a list, found {described(values)}")
    if getattr(values, "ndim", 1) != 1:
        raise UsageError(f"{name}: expected the values of a column, found an array of {values.ndim} axes")
    return listed(values)


def _is_column(value: Any) -> bool:
    """Whether something is more likely a whole column than a row, which is a tuple, a mapping or a text."""
    return is_listed(value) and not isinstance(value, tuple)


def _has(data: Any, *names: str) -> bool:
    return not isinstance(data, type) and all(hasattr(data, name) for name in names)
