"""Texts with a number each, from any table: a rating, a price, an age.

Which columns hold texts and numbers: as told, by their names, else the longest texts and the only column of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.data.choices import OPEN, Choices, Missing
from regard.data.example import Examples, Rated
from regard.data.header import looks_labelled
from regard.data.missing import NO_VALUE, rows_with
from regard.data.packed import Numbers
from regard.data.table import Table, as_time, is_number
from regard.data.tabular import open_table
from regard.data.told_text import Told, choose_text, examples_of, head_of, named_among, only, refuse_same, told_names
from regard.errors import DataError, RegardError

NUMBER_NAMES = ("number", "score", "rating", "stars", "target", "value", "price", "y", "label")
COUNTED = ("id", "idx", "index", "row")  # columns that number rows


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
    table = open_table(data, choices, told_names(text, number))
    text_in, number_in = choose(table, text, number)
    kept = rows_with(table, {"text": text_in}, {"number": number_in}, missing)
    numbers = _numbers(table, number_in, kept.rows)
    first = f"{numbers[int(kept.rows[0])]:g}"
    return examples_of(Rated, data, table, kept, text_in, Told("number", number_in, Numbers(numbers), first))


def choose(table: Table, text: str | None = None, number: str | None = None) -> tuple[str, str]:
    """The columns of texts and of numbers; what cannot be told is refused with the setting that tells it."""
    head = head_of(table, NO_VALUE)
    text_in = None if text is None else table.find("data.text", text)
    number_in = None if number is None else table.find("data.number", number)
    if number_in is None:
        found = [name for name in head if name != text_in and _is_of_numbers(head[name])]
        rows = named_among(table, found, COUNTED)
        chosen = named_among(table, found, NUMBER_NAMES) or [name for name in found if name not in rows]
        number_in = only(table, chosen, "number", "several columns hold numbers", "no column holds numbers")
    if text_in is None:
        text_in = choose_text(table, head, number_in, _is_of_numbers)
    refuse_same(table, text_in, number_in, "number")
    return text_in, number_in


def is_of_numbers(table: Table) -> bool:
    """Whether a table clearly has a text and a number in each row: many different numbers, some of them no whole ones.

    Few different numbers, or whole ones alone, may as well be classes.
    """
    try:
        text_in, number_in = choose(table)
    except RegardError:
        return False
    head = head_of(table, NO_VALUE)
    numbers, texts = head[number_in], head[text_in]
    whole = all(float(cell).is_integer() for cell in numbers)
    return not whole and not looks_labelled(numbers) and any(" " in cell and as_time(cell) is None for cell in texts)


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
