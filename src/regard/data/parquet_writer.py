"""A Parquet file from the lines of a .jsonl, some thousand rows at a time.

The type of a column is the narrowest that holds all its values, which is known after one reading; a second one writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.columnar import needed
from regard.storage.regular import open_regular

WHAT = "writing Parquet files"
AT_ONCE = 1 << 14  # rows of a group
# Of two kinds of value in a column the later one holds both; any other two are held as text.
NUMBERS = {("int", "float"): "float", ("int", "long"): "long"}
LONG, WHOLE = 1 << 53, 1 << 63  # above the first a float has no whole number exactly, from the second on no column


def parquet_from_lines(lines: Path, out: Path) -> None:
    """Write `out` from the objects, one a line and all of the same keys, in `lines`."""
    arrow, parquet = needed("pyarrow", WHAT), needed("pyarrow.parquet", WHAT)
    kinds = _kinds(lines)
    schema = arrow.schema([(name, _type(arrow, kind)) for name, kind in kinds.items()])
    with open(out, "xb") as file, parquet.ParquetWriter(file, schema) as writer:
        for rows in line_chunks(lines):
            columns = [
                arrow.array([_held(row[name], kind) for row in rows], _type(arrow, kind))
                for name, kind in kinds.items()
            ]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def line_chunks(lines: Path) -> Iterator[list[dict[str, Any]]]:
    """The objects of a file of them, some thousand at a time."""
    with open_regular(lines) as raw, open(raw.fileno(), encoding="utf-8", newline="\n", closefd=False) as text:
        rows = map(json.loads, text)
        while some := list(islice(rows, AT_ONCE)):
            yield some


def _kinds(lines: Path) -> dict[str, str]:
    """The kind of each column."""
    found: dict[str, str] = {}
    for rows in line_chunks(lines):
        for row in rows:
            for name, value in row.items():
                found[name] = _joined(found.get(name, "null"), _kind(value))
    return found


def _kind(value: Any) -> str:
    if isinstance(value, list):
        kind = "null"
        for one in value:
            kind = _joined(kind, _kind(one))
        # Lists of lists are kept as text.
        return f"list {'string' if kind == 'null' else kind}" if not kind.startswith("list") else "string"
    if isinstance(value, Mapping) or (isinstance(value, int) and abs(value) >= WHOLE):
        return "string"
    if type(value) is int and abs(value) > LONG:
        return "long"
    kinds = {bool: "bool", int: "int", float: "float", str: "string", type(None): "null"}
    return kinds[type(value)]


def _joined(one: str, other: str) -> str:
    """The kind that holds the values of both."""
    if one == other or other == "null":
        return one
    if one == "null":
        return other
    if (number := NUMBERS.get((one, other)) or NUMBERS.get((other, one))) is not None:
        return number
    is_list = one.startswith("list ") and other.startswith("list ")
    return f"list {_joined(one[5:], other[5:])}" if is_list else "string"


def _type(arrow: Any, kind: str) -> Any:
    if kind.startswith("list "):
        return arrow.list_(_type(arrow, kind[5:]))
    plain = {"bool": arrow.bool_(), "int": arrow.int64(), "long": arrow.int64(), "float": arrow.float64()}
    return plain.get(kind, arrow.string())


def _held(value: Any, kind: str) -> Any:
    """A value as a column of that kind has it."""
    if value is None:
        return None
    if kind.startswith("list "):
        return [_held(one, kind[5:]) for one in value]
    if kind == "string":
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return float(value) if kind == "float" else value
