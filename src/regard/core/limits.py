"""Limits: the largest numbers that a setting may be. One table for what a person types and for what a file says.

What is above is a slip of the finger or a hostile file: a billion layers would not fit in memory as a config. Both meet
the same table, so that no run trains to its end and is then refused when it is loaded.
"""

from __future__ import annotations

from typing import Any

from regard.errors import UsageError

COUNT = 1 << 24
NUMBER = 1 << 32  # also of numbers that are not whole
MOST_PARTS = 1024
LARGEST = {
    "vocab_size": NUMBER,
    "source_vocab_size": NUMBER,
    "n_layers": MOST_PARTS,
    "sample": NUMBER,
    "workers": MOST_PARTS,
    "size": 1 << 16,
    "history": 1 << 16,
    "horizon": 1 << 16,
}


def largest(key: str) -> int:
    """The largest whole number of a setting, by the last part of its name."""
    return LARGEST.get(key.rpartition(".")[2], COUNT)


def require_count(value: int, where: str, least: int = 1) -> None:
    """Refuse a count that is none, or one that no machine holds."""
    if not least <= value <= largest(where):
        raise UsageError(f"{where}: expected a whole number from {least} to {largest(where):,}, found {brief(value)}")


def require_possible(value: Any, where: str) -> None:
    """Refuse numbers that no machine holds, anywhere in a tree of plain values, before anything is made of them."""
    if isinstance(value, dict):
        for key, part in value.items():
            require_possible(part, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        if len(value) > MOST_PARTS:
            raise UsageError(f"{where}: has {len(value):,} parts, at most {MOST_PARTS} are possible")
        for place, part in enumerate(value):
            require_possible(part, f"{where}.{place}")
    elif isinstance(value, int):
        if abs(value) > largest(where):
            raise UsageError(f"{where}: {brief(value)} is above {largest(where):,}; lower it")
    elif isinstance(value, float) and abs(value) > NUMBER:
        raise UsageError(f"{where}: {value:g} is above {NUMBER:,}; lower it")


def brief(value: int) -> str:
    """A whole number as it is, or where its digits would fill lines how many it has."""
    return str(value) if abs(value) < 10**30 else "a number of more than 30 digits"
