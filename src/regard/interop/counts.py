"""Counts as files: parts of a text are counted anywhere, by any process, machine or engine, and merged by key.

A file is safetensors: `counts` and, where known, `first`, then one tensor a column, `column.0` and so on. Its metadata
say what was counted, with a SHA-256 of that and of the numbers. Given the metadata and the number of rows there is one
header a file can have, so that nothing in a damaged one is believed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import DataError, ResourceError, UsageError
from regard.ngram.counts import LARGEST_ORDER, NEVER, Counts, check_order, grouped, token_type
from regard.storage import disk
from regard.storage.regular import open_regular

FORMAT = "regard-counts-1"
LARGEST_HEADER = 1 << 16
PIECE = 1 << 24
TYPES = {"I64": np.dtype("<i8"), "U32": np.dtype("<u4"), "U16": np.dtype("<u2")}


def save_counts(counts: Counts, path: Path | str) -> None:
    """Write a table to a file, which is there as a whole or not at all."""
    path = Path(path)
    arrays = _arrays(counts)
    facts = _facts(counts, len(counts))
    header = _header(facts, _digest(facts, (_bytes(array) for array in arrays.values())))
    try:
        disk.publish(path, (header, *(_bytes(array) for array in arrays.values())))
    except OSError as error:
        raise ResourceError(
            f"cannot write counts to {path}: {error.strerror or error}; free space there or name another file"
        ) from None


def load_counts(path: Path | str) -> Counts:
    """The table in a file, mapped, after every byte was compared with what was written."""
    path = Path(path)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            data = np.memmap(file, np.uint8, "r") if size else np.zeros(0, np.uint8)
    except OSError as error:
        raise DataError(f"cannot read counts from {path}: {error.strerror or error}") from None
    facts, digest, start = _read_header(data, path)
    layout = _layout(facts)
    whole = start + max(end for _, _, end in layout.values())
    if size != whole:
        raise _damaged(path, f"it has {size} bytes and should have {whole}")
    arrays = {name: data[start + a : start + b].view(TYPES[kind]) for name, (kind, a, b) in layout.items()}
    if _digest(facts, (_bytes(array) for array in arrays.values())) != digest:
        raise _damaged(path, "its SHA-256 is not the one it was written with")
    columns = tuple(arrays[f"column.{j}"] for j in range(facts["order"]))
    return Counts(columns, arrays["counts"], facts["vocab_size"], facts["eos_id"], arrays.get("first"))


def from_columns(
    columns: Sequence[np.ndarray],
    counts: np.ndarray,
    vocab_size: int,
    eos_id: int,
    first: np.ndarray | None = None,
) -> Counts:
    """The table that another engine counted: distinct rows in any order, and how often each occurred.

    columns  as of `Counts`: token + 1, and 0 after the end of a sentence. A row begins at every token, at the end of
             a sentence too, and one more, with `eos_id` first, at the beginning of each sentence.
    first    where in the text each token came up first, NEVER for one that did not: discounts equal KenLM's to the
             last digit only when it is known.
    """
    check_order(len(columns))
    if not 0 <= eos_id < vocab_size:
        raise UsageError(f"eos_id {eos_id} is not in 0 .. {vocab_size - 1}")
    kind = token_type(vocab_size)
    given = [_whole_numbers(column, f"column {j}", (0, vocab_size)) for j, column in enumerate(columns)]
    weights = _whole_numbers(counts, "counts", (1, NEVER)).astype(np.int64)
    if len({len(array) for array in (*given, weights)}) != 1 or len(weights) == 0:
        sizes = ", ".join(str(len(array)) for array in (*given, weights))
        raise DataError(f"columns and counts must have as many rows, at least one; found {sizes}")
    _check_rows(given, eos_id)
    table = grouped(tuple(column.astype(kind) for column in given), weights, vocab_size, eos_id)
    if len(table) != len(weights):
        raise DataError(f"{len(weights) - len(table)} of {len(weights)} rows come up twice: group by all columns")
    _check_whole(table)
    return replace(table, first=_checked_first(first, table))


def _whole_numbers(values: np.ndarray, what: str, bounds: tuple[int, int]) -> np.ndarray:
    """An array of whole numbers within bounds."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or np.ma.is_masked(values):
        raise DataError(f"{what} must be one row of whole numbers without gaps, found {array.dtype} {array.shape}")
    low, high = bounds
    for number in (int(array.min()), int(array.max())) if len(array) else ():
        if not low <= number <= high:
            raise DataError(f"{what} has {number}, which is not in {low} .. {high}")
    return array


def _check_rows(columns: Sequence[np.ndarray], eos_id: int) -> None:
    """Every row has a first token, and nothing after the end of its sentence."""
    over = columns[0] == 0
    if over.any():
        raise DataError(f"row {int(np.argmax(over))} has no first token")
    for j in range(1, len(columns)):
        wrong = over & (columns[j] != 0)
        if wrong.any():
            raise DataError(f"row {int(np.argmax(wrong))} goes on after the end of its sentence, in column {j}")
        over = (columns[j] == 0) | (columns[j] == eos_id + 1)


def _check_whole(table: Counts) -> None:
    """Rows are those of whole sentences: what follows a token in a row begins a row of its own as often."""
    if table.order == 1:
        return
    columns, counts = table.columns, table.counts
    own = _own(table)
    goes_on = columns[1] != 0
    begun = grouped(tuple(column[own] for column in columns[:-1]), counts[own], table.vocab_size, table.eos_id)
    followed = grouped(
        tuple(column[goes_on] for column in columns[1:]), counts[goes_on], table.vocab_size, table.eos_id
    )
    pairs = zip((*begun.columns, begun.counts), (*followed.columns, followed.counts), strict=True)
    if not all(np.array_equal(one, other) for one, other in pairs):
        raise DataError(
            "rows are not those of whole sentences: one must begin at every token, at every end of a sentence and, "
            "with eos_id first, at every beginning"
        )


def _own(table: Counts) -> np.ndarray:
    """Which rows begin at a token, instead of at the beginning of a sentence."""
    if table.order == 1:
        return np.ones(len(table), bool)
    return (table.columns[0] != table.eos_id + 1) | (table.columns[1] == 0)


def _checked_first(first: np.ndarray | None, table: Counts) -> np.ndarray | None:
    if first is None:
        return None
    array = _whole_numbers(first, "first", (0, NEVER)).astype(np.int64)
    seen = np.zeros(table.vocab_size, bool)
    seen[np.unique(table.columns[0][_own(table)]).astype(np.int64) - 1] = True
    if len(array) != table.vocab_size or not np.array_equal(array != NEVER, seen):
        raise DataError("first must say of every token where it came up first, and NEVER of one that did not")
    return array


def _arrays(counts: Counts) -> dict[str, np.ndarray]:
    """Arrays by name, wide ones first, so that all are aligned."""
    known = {} if counts.first is None else {"first": counts.first}
    columns = {f"column.{j}": column for j, column in enumerate(counts.columns)}
    return {"counts": counts.counts} | known | columns


def _facts(counts: Counts, rows: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "order": counts.order,
        "vocab_size": counts.vocab_size,
        "eos_id": counts.eos_id,
        "rows": rows,
        "first": counts.first is not None,
    }


def _layout(facts: Mapping[str, Any]) -> dict[str, tuple[str, int, int]]:
    """Number type, begin and end of every tensor."""
    rows, vocab_size = facts["rows"], facts["vocab_size"]
    column = "U16" if token_type(vocab_size) is np.uint16 else "U32"
    parts = [("counts", "I64", rows), *([("first", "I64", vocab_size)] if facts["first"] else [])]
    parts += [(f"column.{j}", column, rows) for j in range(facts["order"])]
    layout, place = {}, 0
    for name, kind, length in parts:
        layout[name] = (kind, place, place + length * TYPES[kind].itemsize)
        place = layout[name][2]
    return layout


def _header(facts: Mapping[str, Any], digest: str) -> bytes:
    content: dict[str, Any] = {"__metadata__": {"regard": json.dumps(facts), "sha256": digest}}
    for name, (kind, begin, end) in _layout(facts).items():
        shape = [(end - begin) // TYPES[kind].itemsize]
        content[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _read_header(data: np.ndarray, path: Path) -> tuple[dict[str, Any], str, int]:
    """What a file says it holds, its digest, and where its numbers begin."""
    length = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or length > LARGEST_HEADER:
        raise DataError(f"{path} is no table of counts")
    head = data[: 8 + length].tobytes()
    try:
        metadata = json.loads(head[8:])["__metadata__"]
        facts, digest = json.loads(metadata["regard"]), metadata["sha256"]
        if facts["format"] != FORMAT:
            raise DataError(f"{path} is no table of counts in a format that this regard reads, {FORMAT}")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{path} is no table of counts, or is damaged; count again") from None
    if not _sound(facts) or _header(facts, digest) != head:
        raise _damaged(path, "its header is not one that regard writes")
    return facts, digest, len(head)


def _sound(facts: Mapping[str, Any]) -> bool:
    numbers = [facts.get(name) for name in ("order", "vocab_size", "eos_id", "rows")]
    if not all(type(number) is int for number in numbers) or type(facts.get("first")) is not bool:
        return False
    order, vocab_size, eos_id, rows = facts["order"], facts["vocab_size"], facts["eos_id"], facts["rows"]
    return 1 <= order <= LARGEST_ORDER and 0 <= eos_id < vocab_size <= 1 << 32 and rows >= 0


def _digest(facts: Mapping[str, Any], parts: Iterator[memoryview]) -> str:
    digest = hashlib.sha256(json.dumps(facts).encode())
    for part in parts:
        for start in range(0, len(part), PIECE):
            digest.update(part[start : start + PIECE])
    return digest.hexdigest()


def _bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).data


def _damaged(path: Path, how: str) -> DataError:
    return DataError(f"{path} is damaged: {how}; count its part of the text again")
