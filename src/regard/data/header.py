"""Header: whether the first row of a table names its columns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from regard.data.table import as_time, is_missing, is_number

HEAD_ROWS = 1000  # rows that are looked at
# Names that no first row of data has in that column's place by chance.
USUAL = frozenset(
    (
        *("label", "labels", "class", "category", "sentiment", "source", "target", "src", "tgt", "id", "idx", "index"),
        *("sentence1", "sentence2", "tokens", "tags", "ner_tags", "pos_tags", "time", "date", "datetime", "timestamp"),
        *("caption", "file_name"),
    )
)
# What the columns of a table of translations are called.
LANGUAGE = re.compile(
    "ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|ko|lt|lv|ms|nl|no|pl|pt|ro|ru|sk|sl|sr|sv|ta|th|tr|"
    "uk|ur|vi|zh|deu|eng|fra|spa|ita|rus|english|german|french|spanish|italian|portuguese|dutch|russian|chinese|"
    "japanese|korean|arabic|turkish|polish|czech|greek|hebrew|hindi|deutsch"
)


def is_header(first: Sequence[str | None], rows: Sequence[Sequence[str | None]], known: Collection[str]) -> str:
    """Why the first row is taken as names: "named" by a name that is known, "look" by its look; "" where it is data.

    rows   those below it, by column.
    known  names that somebody told, beside the usual ones.
    """
    names = [(cell or "").strip().lower() for cell in first]
    if any(is_number(name) or as_time(name) is not None for name in names if name) and len(names) > 1:
        return ""
    if any(name in USUAL or name in known or name.startswith("caption_") for name in names):
        return "named"
    if len(set(names)) == len(names) > 1 and all(map(LANGUAGE.fullmatch, names)):
        return "named"
    if not rows or not rows[0]:
        return ""
    if any(_counts(name, column) for name, column in zip(names, rows, strict=True)):
        return "named"
    return "look" if _unlike(names, rows) else ""


def looks_labelled(column: Sequence[str | None]) -> bool:
    """Whether there are few different values for the number of rows, and more than one."""
    most = max(2, min(len(column) // 2, int(4 * math.sqrt(len(column)))))
    return 2 <= n_different(column, most + 1) <= most


def n_different(column: Iterable[object], enough: int) -> int:
    """How many different values there are; `enough` of them are not counted further."""
    seen: set[object] = set()
    for value in column:
        seen.add(value)
        if len(seen) >= enough:
            break
    return len(seen)


def mean_length(column: Sequence[str | None]) -> float:
    """Characters per cell."""
    return sum(len(cell or "") for cell in column) / len(column)


def _counts(name: str, column: Sequence[str | None]) -> bool:
    """Whether a word stands over nothing but numbers or times."""
    filled = [cell.strip() for cell in column if cell and not is_missing(cell)]
    if not name or len(filled) < 2:
        return False
    return all(map(is_number, filled)) or all(as_time(cell) is not None for cell in filled)


def _unlike(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> bool:
    """Whether the first row names columns by its look: single words over longer texts, and over labels none of them.

    A label that comes once may as well be a rare class: the texts beside it must be longer than its own by far.
    """
    if len(rows[0]) < 4 or any(" " in name or not name for name in names):
        return False
    longest = max(range(len(rows)), key=lambda place: mean_length(rows[place]))
    if mean_length(rows[longest]) <= 2 * len(names[longest]):
        return False
    for place, column in enumerate(rows):
        counts = Counter((cell or "").strip().lower() for cell in column)
        if place != longest and names[place] not in counts and min(counts.values()) > 1 and len(counts) > 1:
            return True
    return False
