"""Which documents or examples are held out for validation.

hash:0.1   about a tenth, chosen by the SHA-256 of each document's text. A document and its duplicates always fall
           on the same side, and keep their side when others come or go. A single document is cut into blocks at
           line ends, and the blocks are chosen.
tail:0.1   the last tenth; of a single document the last tenth of its characters.
PATH       another file or folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import groupby
from typing import TypeVar

from regard.errors import DataError, UsageError

T = TypeVar("T")

BLOCK = 2000
# Small texts get smaller blocks, so that there are about twenty.
SMALLEST_BLOCK = 100
SMALLEST_TEXT = 2 * SMALLEST_BLOCK


def rule(valid: str) -> tuple[str, float] | None:
    """("hash" or "tail", fraction), or None when `valid` is a path."""
    name, colon, number = valid.partition(":")
    if not colon or name not in ("hash", "tail"):
        return None
    try:
        fraction = float(number)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise UsageError(f"valid = {valid!r}: the part after {name}: must be a number between 0 and 1, such as 0.1")
    return name, fraction


def split(documents: list[str], name: str, fraction: float) -> tuple[list[str], list[str]]:
    """(train, valid) documents by one of the two rules."""
    if name == "tail":
        return _tail(documents, fraction)
    if len(documents) > 1:
        chosen = _chosen(documents, fraction)
        return (
            [document for document, held in zip(documents, chosen, strict=True) if not held],
            [document for document, held in zip(documents, chosen, strict=True) if held],
        )
    return _blocks_by_hash(documents[0], fraction)


def split_examples(examples: list[T], valid: str, key: Callable[[T], str]) -> tuple[list[T], list[T]]:
    """(train, valid) examples by the rule `valid`. Examples with the same key fall on the same side.

    The last tenth of tail:0.1 is counted in different keys; a key stands where it comes first.
    """
    held_out = rule(valid)
    if held_out is None:
        raise UsageError(f"valid = {valid!r} is no rule; give hash:0.1, tail:0.1 or a file that exists")
    name, fraction = held_out
    keys = [key(example) for example in examples]
    different = list(dict.fromkeys(keys))
    if len(different) < 2:
        raise DataError(
            f"there are {len(examples)} examples, all the same, so nothing can be held out for validation: "
            f"the smallest amount is two different ones (or give a validation file of its own)"
        )
    if name == "hash":
        held = {text for text, is_held in zip(different, _chosen(different, fraction), strict=True) if is_held}
    else:
        n_held = min(max(1, round(len(different) * fraction)), len(different) - 1)
        held = set(different[-n_held:])
    train = [example for example, text in zip(examples, keys, strict=True) if text not in held]
    return train, [example for example, text in zip(examples, keys, strict=True) if text in held]


def overlap(train: list[str], valid: list[str]) -> int:
    """How many validation documents are also training documents, word for word."""
    known = set(map(_digest, train))
    return sum(_digest(document) in known for document in valid)


def blocks(text: str, size: int) -> list[str]:
    """The text in parts of `size` to 1.5 x `size` characters that end at a line, else at a space, else anywhere."""
    parts = []
    start = 0
    while len(text) - start > size * 3 // 2:
        low, high = start + size, start + size * 3 // 2
        ends = (text.find(mark, low - 1, high) for mark in ("\n", " "))
        stop = next((end + 1 for end in ends if end >= 0), low)
        parts.append(text[start:stop])
        start = stop
    return [*parts, text[start:]]


def _blocks_by_hash(text: str, fraction: float) -> tuple[list[str], list[str]]:
    """Blocks chosen by hash. Neighbours on the same side stay joined, as one document."""
    if len(text) < SMALLEST_TEXT:
        raise DataError(
            f"the text has {len(text)} characters, too few to hold some out for validation: "
            f"the smallest amount is {SMALLEST_TEXT} (or give validation text of its own)"
        )
    parts = blocks(text, min(BLOCK, max(SMALLEST_BLOCK, len(text) // 20)))
    sides: tuple[list[str], list[str]] = ([], [])
    for held, run in groupby(zip(_chosen(parts, fraction), parts, strict=True), key=lambda pair: pair[0]):
        sides[held].append("".join(part for _, part in run))
    return sides


def _chosen(parts: list[str], fraction: float) -> list[bool]:
    """Whether each part is held out. At least one is, and at least one is not."""
    places = [_place(part) for part in parts]
    lowest, highest = min(places), max(places)
    if lowest == highest:
        raise DataError(
            "the text has no two different documents or parts, so nothing can be held out for validation: "
            "the smallest amount is two (or use valid = tail:0.1, or give validation text of its own)"
        )
    return [(place < fraction or place == lowest) and place != highest for place in places]


def _tail(documents: list[str], fraction: float) -> tuple[list[str], list[str]]:
    """The first part and the rest. Of several documents none is cut: one across the border is for training."""
    if len(documents) == 1:
        text = documents[0]
        border = int(len(text) * (1 - fraction))
        if not 0 < border < len(text):
            smallest = int(max(1 / fraction, 1 / (1 - fraction))) + 1
            raise DataError(
                f"the text has {len(text)} characters, too few for tail:{fraction}; give at least {smallest}"
            )
        return [text[:border]], [text[border:]]
    total = sum(map(len, documents))
    n_train = n_chars = 0
    while n_train < len(documents) - 1 and n_chars < total * (1 - fraction):
        n_chars += len(documents[n_train])
        n_train += 1
    return documents[:n_train], documents[n_train:]


def _place(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(_digest(text)[:8], "big") / 2**64


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
