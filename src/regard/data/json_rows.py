"""Rows of JSON: an array of objects, of texts or of lists, or an object a line, one at a time however many there are.

A value that is no text is kept as JSON writes it: 1, true, ["a", "b"].
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from itertools import islice, repeat
from typing import Any

import numpy as np

from regard.core.progress import OFTEN, stage
from regard.data.cell import Typed
from regard.data.cells import Grid
from regard.data.csv_rows import refuse_columns
from regard.data.decoding import LINE_LIMIT, decoded_pieces, lines, refuse_foreign
from regard.data.source import named, opened, shown
from regard.errors import DataError

TEXT = "text"  # the column of an array of texts
SPACE = " \t\r\n"


def begins_as_json(head: bytes) -> bool:
    """Whether the first bytes of a file are those of JSON: its first value is whole, or is cut by the end of them."""
    text = head.decode("utf-8", "ignore").removeprefix("\ufeff").lstrip()
    if text.startswith("["):
        body = text[1:].lstrip(SPACE)
        if body[:1] == "]":
            return True
        try:
            _, end = json.JSONDecoder().raw_decode(body)
        except (ValueError, RecursionError):
            return len(head) > 1000 and body[:1] in "{["
        return body[end:].lstrip(SPACE)[:1] in (",", "]", "")
    first = text.partition("\n")[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return "\n" not in text and len(head) > 1000


def read_json(path: str, encoding: str | None = None, most: int | None = None) -> tuple[tuple[str, ...] | None, Grid]:
    """The names of the columns, None where the rows are lists, and the columns. most: rows that are read."""
    columns: dict[str, Typed] = {}
    numbers = array("q")
    is_named = True
    for number, item in islice(_items(path, encoding), most):
        where = f"{shown(path)}, line {number}"
        if isinstance(item, list):
            if numbers and (is_named or len(item) != len(columns)):
                raise DataError(f"{where}: {len(item)} cells where the rows before have {len(columns)}; mend that row")
            is_named, item = False, {str(place): cell for place, cell in enumerate(item, 1)}
        elif not isinstance(item, dict):
            item = {TEXT: item}
        for name in item:
            if name not in columns:
                refuse_columns(len(columns) + 1, where)
                columns[name] = Typed(repeat(None, len(numbers)))
        for name, column in columns.items():
            column.append(written(item.get(name)), item.get(name))
        numbers.append(number)
    if not numbers:
        raise DataError(f"{shown(path)} holds no rows: give objects with named values")
    grid = Grid(list(columns.values()), np.frombuffer(numbers, np.int64))
    return (tuple(columns) if is_named else None), grid


def written(value: object) -> str | None:
    """A value of JSON as the text of a cell."""
    if value is None or isinstance(value, str):
        return value
    return None if value != value else json.dumps(value, ensure_ascii=False)


def _items(path: str, encoding: str | None) -> Iterator[tuple[int, Any]]:
    with named(path), opened(path, encoding) as stream:
        refuse_foreign(stream, shown(path))
        head = stream.peek(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()
        if head[:1] == b"[":
            yield from _array(path, decoded_pieces(stream, shown(path)))
            return
        with stage("reading", 0, "rows") as advance:
            for number, row in enumerate(lines(stream, shown(path), advice="break it up"), 1):
                if row.strip():
                    yield number, _object(path, number, row)
                if number % OFTEN == 0:
                    advance(OFTEN)


def _object(path: str, number: int, row: str) -> dict[str, Any]:
    where = f"{shown(path)}, line {number}"
    try:
        item = json.loads(row)
    except (ValueError, RecursionError) as error:
        told = "give an array of objects, or one object a line"
        raise DataError(f"{where}: no good JSON ({error}); {told}") from None
    if not isinstance(item, dict):
        raise DataError(f"{where}: {row.strip()[:20]!r} is no object; give one object a line")
    return item


def _array(path: str, pieces: Iterator[str]) -> Iterator[tuple[int, Any]]:
    """The values of an array with the line on which each begins; no more than one of them is in memory."""
    decoder, text, place, line = json.JSONDecoder(), "", 0, 1
    waits_for = "["
    while True:
        while place < len(text) and text[place] in SPACE:
            line, place = line + (text[place] == "\n"), place + 1
        if place == len(text):
            text, place = next(pieces, None), 0
            if text is None:
                raise DataError(f"{shown(path)}, line {line}: the array does not end; is the file whole?")
        elif waits_for and text[place] == waits_for:
            place, waits_for = place + 1, ""
        elif text[place] == "]":
            _refuse_more(path, text[place + 1 :], pieces, line)
            return
        elif waits_for:
            raise DataError(f"{shown(path)}, line {line}: no good JSON, expected {waits_for!r}; mend that place")
        else:
            try:
                item, end = decoder.raw_decode(text, place)
            except (ValueError, RecursionError) as error:
                item, end = error, len(text)
            # A number may go on in the next piece, and so may what is not yet whole.
            if end == len(text) and (more := next(pieces, None)) is not None:
                text, place = text[place:] + more, 0
                if len(text) > 2 * LINE_LIMIT:
                    raise DataError(f"{shown(path)}, line {line}: a value of more than {LINE_LIMIT:,} bytes or no JSON")
                continue
            if isinstance(item, Exception):
                raise DataError(f"{shown(path)}, line {line}: no good JSON ({item}); mend that place") from None
            yield line, item
            line, place, waits_for = line + text.count("\n", place, end), end, ","


def _refuse_more(path: str, text: str, pieces: Iterator[str], line: int) -> None:
    if text.strip(SPACE) or any(piece.strip(SPACE) for piece in pieces):
        raise DataError(f"{shown(path)}, line {line}: there is more after the end of the array; mend that place")
