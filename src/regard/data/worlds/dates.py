"""Dates as people write them, to be written as ISO 8601 has them: "Tue, Mar 14, 2023" -> "2023-03-14".

Days from 1930 to 2029, all equally likely, in one of the forms below. A form decides the order of its parts: between
slashes and hyphens the month comes first, between dots the day. A year of two digits is 19.. from 30 on, else 20.. .
So the phrase determines the date, and the best exact match is 1. A weekday is always the right one: it adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import ClassVar

from regard.data.example import Pair
from regard.data.worlds.base import ExampleWorld

FIRST = date(1930, 1, 1)
LAST = date(2029, 12, 31)
MONTH_NAMES = "january february march april may june july august september october november december"
WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
UNITS = "first second third fourth fifth sixth seventh eighth ninth"
TEENS = "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
MONTHS = MONTH_NAMES.split(" ")
WEEKDAYS = WEEKDAY_NAMES.split(" ")
TWENTIES = [f"twenty-{unit}" for unit in UNITS.split(" ")]
ORDINALS = [*UNITS.split(" "), *TEENS.split(" "), "twentieth", *TWENTIES, "thirtieth", "thirty-first"]


def month(day: date) -> str:
    return MONTHS[day.month - 1]


def weekday(day: date) -> str:
    return WEEKDAYS[day.weekday()]


def short(name: str) -> str:
    """Mar of march."""
    return name[:3].capitalize()


def numbered(day: date) -> str:
    """The day of the month as 1st, 2nd, 3rd, 4th; 11th to 13th are regular.

    >>> [numbered(date(2023, 3, n)) for n in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = "th" if day.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return f"{day.day}{ending}"


FORMS: tuple[Callable[[date], str], ...] = (
    lambda d: f"{weekday(d)}, {d.day} {month(d)} {d.year}",
    lambda d: f"{weekday(d).capitalize()} the {numbered(d)} of {month(d).capitalize()}, {d.year}",
    lambda d: f"{short(weekday(d))}, {short(month(d))} {d.day}, {d.year}",
    lambda d: f"{short(weekday(d))} {d:%d} {short(month(d))} {d:%y}",
    lambda d: f"{short(month(d))} {d.day}, {d.year}",
    lambda d: f"{month(d).capitalize()} {numbered(d)}, {d.year}",
    lambda d: f"the {numbered(d)} of {month(d)} {d.year}",
    lambda d: f"the {ORDINALS[d.day - 1]} of {month(d)} {d.year}",
    lambda d: f"{d.day} {month(d)} '{d:%y}",
    lambda d: f"{d.month}/{d.day}/{d:%y}",
    lambda d: f"{d:%m-%d-%Y}",
    lambda d: f"{d.day}.{d.month}.{d.year}",
    lambda d: f"{d:%d.%m.%y}",
    lambda d: f"{d.year}, {month(d)} {d.day}",
    lambda d: f"{d:%Y%m%d}",
)


@dataclass(frozen=True)
class Dates(ExampleWorld[Pair]):
    """Phrases for days, each with its ISO date."""

    name: ClassVar[str] = "dates"
    task: ClassVar[str] = "pairs"
    tokens: ClassVar[str] = "chars"
    best: ClassVar[dict[str, float]] = {"exact_match": 1.0}

    def example(self, seed: int) -> Pair:
        random = Random(seed)
        day = FIRST + timedelta(days=random.randrange((LAST - FIRST).days + 1))
        return Pair(random.choice(FORMS)(day), day.isoformat())
