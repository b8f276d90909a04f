"""WordTable: the ids of the words of a text, many at a time.

A dictionary looks words up one by one, each a string of its own that is made, hashed and compared. Here the words of a
text stay bytes: up to sixteen of them are two whole numbers, and all words of a piece go through a hash table of such
pairs together. The few that are longer are left to the dictionary.

Glossary
pair   the bytes of a word as two numbers, (n, 2) uint64, zeros after its end
slot   a place of the table; a word stands in the first free one from that of its hash on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

SPACE, LINE_END = 32, 10
WIDTH = 16  # bytes of a pair
FREE = -1
# Of the numbers of a pair, and of both together (odd, with bits everywhere).
FACTORS = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)))
# The lowest 0 .. 8 bytes of a number.
KEPT = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)


class WordTable:
    """Words and the end of a line, by their numbers. id_of: the same as a dictionary; what it lacks is number 0."""

    def __init__(self, words: Sequence[str], id_of: Mapping[str, int]) -> None:
        self._id_of = id_of
        short = [(word.encode(), number) for number, word in enumerate(words)]
        short = [(data, number) for data, number in short if 0 < len(data) <= WIDTH and 0 not in data]
        padded = b"".join(data.ljust(WIDTH, b"\0") for data, _ in short)
        pairs = np.frombuffer(padded, "<u8").reshape(-1, 2)
        numbers = np.array([number for _, number in short], np.int32)
        self._bits = max(4, (2 * len(short)).bit_length())
        self._pairs = np.zeros((1 << self._bits, 2), np.uint64)
        self._numbers = np.full(1 << self._bits, FREE, np.int32)
        slots = self._slots(pairs)
        while len(numbers):
            # Of several words that want the same free slot the first has it; the others look at the next one.
            _, first = np.unique(slots, return_index=True)
            first = first[self._numbers[slots[first]] == FREE]
            self._pairs[slots[first]], self._numbers[slots[first]] = pairs[first], numbers[first]
            left = np.ones(len(numbers), bool)
            left[first] = False
            pairs, numbers, slots = pairs[left], numbers[left], self._next(slots[left])

    def ids(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the words and ends of lines in UTF-8 without NUL, and where each begins."""
        text = np.frombuffer(data + bytes(WIDTH), np.uint8)
        is_end = text[: len(data)] == LINE_END
        is_word = ~(is_end | (text[: len(data)] == SPACE))
        edges = np.diff(is_word, prepend=False, append=False).nonzero()[0]
        begins, sizes = edges[::2], edges[1::2] - edges[::2]
        if is_end.any():
            lines = is_end.nonzero()[0]
            begins = np.concatenate([begins, lines])
            order = begins.argsort(kind="stable")
            begins, sizes = begins[order], np.concatenate([sizes, np.ones(len(lines), sizes.dtype)])[order]
        found = self._found(_pairs(text, begins, sizes))
        for place in (sizes > WIDTH).nonzero()[0].tolist():
            word = data[begins[place] : begins[place] + sizes[place]].decode()
            found[place] = self._id_of.get(word, 0)
        return found, begins

    def _found(self, pairs: np.ndarray) -> np.ndarray:
        slots = self._slots(pairs)
        found = np.zeros(len(pairs), np.int64)
        asked: np.ndarray | slice = slice(None)
        while len(slots):
            numbers = self._numbers.take(slots)
            there = self._pairs.take(slots, axis=0)
            same = (there[:, 0] == pairs[:, 0]) & (there[:, 1] == pairs[:, 1])
            found[asked] = np.where(same, numbers, 0)
            goes_on = (~same & (numbers != FREE)).nonzero()[0]
            asked = goes_on if isinstance(asked, slice) else asked[goes_on]
            pairs, slots = pairs[goes_on], self._next(slots[goes_on])
        return np.maximum(found, 0)

    def _slots(self, pairs: np.ndarray) -> np.ndarray:
        mixed = (pairs[:, 0] * FACTORS[0]) ^ (pairs[:, 1] * FACTORS[1])
        mixed = (mixed ^ (mixed >> np.uint64(32))) * FACTORS[2]
        return (mixed >> np.uint64(64 - self._bits)).astype(np.int64)

    def _next(self, slots: np.ndarray) -> np.ndarray:
        return (slots + 1) & ((1 << self._bits) - 1)


def _pairs(text: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The first sixteen bytes of words. text: with as many bytes after its last word."""
    at = np.ndarray(len(text) - 7, "<u8", text.data, strides=(1,))  # the eight bytes from every place on
    pairs = np.empty((len(begins), 2), np.uint64)
    pairs[:, 0] = at[begins] & KEPT[np.minimum(sizes, 8)]
    pairs[:, 1] = at[np.minimum(begins + 8, len(at) - 1)] & KEPT[np.clip(sizes - 8, 0, 8)]
    return pairs
