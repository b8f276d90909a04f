"""Texts with a number each, from any table: a rating, a price, an age.

Which columns hold texts and numbers: as told, by their names, else the longest texts and the only column of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.data.account import Account
from regard.data.choices import OPEN, Choices, Missing
from regard.data.example import Examples, Rated
from regard.data.header import looks_labelled, mean_length
from regard.data.labelled import TEXT_NAMES
from regard.data.missing import NO_VALUE, rows_with
from regard.data.packed import Mapped, Numbers
from regard.data.source import shown
from regard.data.table import Table, as_time, is_number
from regard.data.tabular import describe, open_table
from regard.errors import DataError, RegardError, UsageError

NUMBER_NAMES = ("number", "score", "rating", "stars", "target", "value", "price", "y", "label")
COUNTED = ("id", "idx", "index", "row")  # columns that number rows
HEAD = 1_000  # rows by which columns are told


def read_rated(
    data: str,
    *,
    text: str | None = None,
    number: str | None = None,
    missing: Missing = "refuse",
    choices: Choices = OPEN,
) -> Examples[Rated]:
    """The texts of a table with their numbers; what is no number is refused with its line.

    text, number  the name of a column, or its number from 1.
    missing       what is done about rows that lack one of them.
    """
    known = [name.strip().lower() for name in (text, number) if name is not None and not name.isdecimal()]
    table = open_table(data, choices, known)
    text_in, number_in = choose(table, text, number)
    kept = rows_with(table, {"text": text_in}, {"number": number_in}, missing)
    numbers = _numbers(table, number_in, kept.rows)
    texts = table.cells[text_in]
    account = Account(
        data=data,
        form=describe(table),
        target=number_in,
        columns={"text": text_in, "number": number_in},
        ignored=[name for name in table.names if name not in (text_in, number_in)],
        read=len(table),
        dropped=kept.dropped,
        first={"text": texts[int(kept.rows[0])] or "", "number": f"{numbers[int(kept.rows[0])]:g}"},
    )
    notes = [table.note, kept.told]
    return Examples(
        Rated,
        {"text": Mapped(texts, _text), "number": Numbers(numbers), "where": table.places},
        rows=kept.rows,
        note=f"{shown(data)}: {'; '.join(filter(None, notes))}" if any(notes) else "",
        settings={"text": text_in, "number": number_in},
        account=account,
    )


def choose(table: Table, text: str | None = None, number: str | None = None) -> tuple[str, str]:
    """The columns of texts and of numbers; what cannot be told is refused with the setting that tells it."""
    head = {name: _filled(column) for name, column in zip(table.names, table.head(HEAD), strict=True)}
    text_in = None if text is None else table.find("data.text", text)
    number_in = None if number is None else table.find("data.number", number)
    lowered = {name: name.strip().lower() for name in head} if table.named else {}
    if number_in is None:
        found = [name for name in head if name != text_in and _is_of_numbers(head[name])]
        named = [name for name in found if lowered.get(name) in NUMBER_NAMES]
        others = [name for name in found if lowered.get(name) not in COUNTED]
        number_in = _only(table, named or others, "number", "several columns hold numbers", "no column holds numbers")
    if text_in is None:
        found = [name for name in head if name != number_in and head[name] and not _is_of_numbers(head[name])]
        named = [name for name in found if lowered.get(name) in TEXT_NAMES]
        longest = sorted(found, key=lambda name: -mean_length(head[name]))
        far = len(longest) > 1 and 2 * mean_length(head[longest[1]]) <= mean_length(head[longest[0]])
        chosen = named or (longest[:1] if far else found)
        text_in = _only(table, chosen, "text", "several columns may be the text", "no column holds texts")
    if text_in == number_in:
        raise UsageError(f"data.text and data.number are both column {text_in!r} of {shown(table.path)}")
    return text_in, number_in


def is_of_numbers(table: Table) -> bool:
    """Whether a table clearly has a text and a number in each row: many different numbers, some of them no whole ones.

    Few different numbers, or whole ones alone, may as well be classes.
    """
    try:
        text_in, number_in = choose(table)
    except RegardError:
        return False
    head = dict(zip(table.names, table.head(HEAD), strict=True))
    numbers, texts = _filled(head[number_in]), _filled(head[text_in])
    whole = all(float(cell).is_integer() for cell in numbers)
    return not whole and not looks_labelled(numbers) and any(" " in cell and as_time(cell) is None for cell in texts)


def _only(table: Table, found: Sequence[str], role: str, many: str, none: str) -> str:
    if len(found) == 1:
        return found[0]
    names = ", ".join(table.names)
    told = many if found else none
    raise UsageError(f"{shown(table.path)}: {told}; its columns are {names}: say which with data.{role}=NAME")


def _filled(column: Sequence[Any]) -> list[str]:
    """The cells that have a value, without blanks around them; a cell may be a list, which is no text and no number."""
    return [cell.strip() for cell in column if isinstance(cell, str) and cell.strip() not in NO_VALUE]


def _is_of_numbers(cells: Sequence[str]) -> bool:
    return bool(cells) and all(map(is_number, cells))


def _numbers(table: Table, name: str, rows: np.ndarray) -> np.ndarray:
    """The numbers of a column (n,), NaN in rows that are left out."""
    found, cells = np.full(len(table), np.nan), table.cells[name]
    for row, cell in zip(rows.tolist(), cells.at(rows), strict=True):
        plain = (cell or "").strip()
        if not is_number(plain):
            raise DataError(
                f"{table.where(row)}: {plain[:40]!r} in column {name!r} is no finite number such as 3.5; mend it"
            )
        found[row] = float(plain)
    return found


def _text(cell: str | None) -> str:
    return cell or ""
