"""Batches that a small text can fill: what nobody has set is made smaller until it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from regard.errors import TooSmall
from regard.run.settings import Origin, Settings

ROWS, LENGTH = "train.batch_size", "train.length"
SMALL = "a small text"
# What is given up last: four rows at a time, of sixteen tokens.
FEW_ROWS, SHORT = 4, 16

T = TypeVar("T")


def fitted(settings: Settings, make: Callable[[Settings], T]) -> tuple[Settings, T]:
    """What `make` gives for the settings, or for smaller batches where it raises `TooSmall`, and with which it did."""
    try:
        return settings, make(settings)
    except TooSmall:
        for less in smaller(settings):
            with suppress(TooSmall):
                return less, make(less)
        raise


def smaller(settings: Settings) -> Iterator[Settings]:
    """The same settings with ever smaller batches, as far as nobody has set their sizes."""
    rows, length = settings[ROWS], settings[LENGTH]
    may = {key: _is_automatic(settings.table[key].place) for key in (ROWS, LENGTH)}
    while (rows > 1 and may[ROWS]) or (length > 1 and may[LENGTH]):
        if may[ROWS] and rows > (FEW_ROWS if may[LENGTH] and length > SHORT else 1):
            rows //= 2
        elif may[LENGTH] and length > 1:
            length //= 2
        changes = {ROWS: Origin(rows, SMALL), LENGTH: Origin(length, SMALL)}
        yield Settings({**settings.table, **{key: value for key, value in changes.items() if may[key]}})


def told_smaller(usual: Settings, less: Settings) -> str:
    """What was made smaller, for a person."""
    sizes = [f"{one[ROWS]} rows of {one[LENGTH]} tokens" for one in (less, usual)]
    return f"the text is small: batches of {sizes[0]} instead of {sizes[1]} (train.batch_size, train.length)"


def _is_automatic(place: str) -> bool:
    """Whether a value is a default, of the package, of a model or of a comparison."""
    return place in ("default", "comparison") or place.startswith("model ")
