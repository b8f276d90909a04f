"""The table by which SentencePiece rewrites characters before it looks for pieces (Kudo and Richardson 2018, 3.2).

A table is bytes: how long its trie is (four bytes), the trie, and the strings that its leaves point to, each ended by a
zero. The trie is a double array: from unit u, byte c leads to unit u ^ offset(u) ^ c, if that unit carries c. At every
place of a text the longest key is replaced; what no key begins with stays.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np

LARGEST = 1 << 23  # bytes of a table: those in use have a quarter of a million
LONGEST_KEY = 64  # bytes
MOST = 1 << 18  # bytes of all keys
ROWS = 1 << 12  # places that are looked from at a time


@dataclass(frozen=True, eq=False)
class Charsmap:
    """rules: what each key becomes."""

    rules: dict[str, str]

    def __post_init__(self) -> None:
        lengths: dict[str, set[int]] = {}
        for key in self.rules:
            lengths.setdefault(key[0], set()).add(len(key))
        object.__setattr__(self, "_lengths", {first: sorted(found, reverse=True) for first, found in lengths.items()})
        firsts = "".join(map(re.escape, lengths))
        object.__setattr__(self, "_firsts", re.compile(f"[{firsts}]") if firsts else None)

    def rewritten(self, text: str) -> str:
        """The text with every key replaced, the longest one first."""
        firsts: re.Pattern[str] | None = self._firsts  # pyright: ignore[reportAttributeAccessIssue]
        lengths: dict[str, list[int]] = self._lengths  # pyright: ignore[reportAttributeAccessIssue]
        if firsts is None:
            return text
        parts, done = [], 0
        for found in firsts.finditer(text):
            place = found.start()
            if place < done:
                continue
            for length in lengths[text[place]]:
                value = self.rules.get(text[place : place + length])
                if value is not None and place + length <= len(text):
                    parts += [text[done:place], value]
                    done = place + length
                    break
        return "".join(parts) + text[done:]


def read_charsmap(content: bytes) -> Charsmap:
    """The rules of a table; raises ValueError on what is none."""
    if not content:
        return Charsmap({})
    if len(content) > LARGEST or len(content) < 8:
        raise ValueError(f"a table of characters of {len(content)} bytes")
    (size,) = struct.unpack_from("<I", content)
    if size % 4 or not 4 <= size <= len(content) - 4:
        raise ValueError("a table of characters whose trie does not fit into it")
    units = np.frombuffer(content, "<u4", size // 4, 4)
    return Charsmap({key.decode(): _string(content, 4 + size + value) for key, value in _keys(units).items()})


def _string(content: bytes, start: int) -> str:
    end = content.find(b"\0", start)
    if not 0 <= start <= len(content) or end < 0:
        raise ValueError("a table of characters that points out of itself")
    return content[start:end].decode()


def _keys(units: np.ndarray) -> dict[bytes, int]:
    """Every key of a trie with its number, found a byte at a time for all of them at once."""
    places, paths = np.array([_offset(units[:1])[0]], dtype=np.int64), [b""]
    found: dict[bytes, int] = {}
    left = MOST
    for _ in range(LONGEST_KEY):
        rows, reached = _children(units, places)
        left -= len(reached)
        if left < 0:
            raise ValueError("a table of characters with too many keys, or whose trie goes in circles")
        if not len(reached):
            return found
        paths = [paths[row] + bytes([units[unit] & 0xFF]) for row, unit in zip(rows, reached, strict=True)]
        places = reached ^ _offset(units[reached])
        for number in np.flatnonzero(units[reached] & np.uint32(1 << 8)):
            if places[number] >= len(units):
                raise ValueError("a table of characters whose trie is damaged")
            found[paths[number]] = int(units[places[number]] & np.uint32(0x7FFFFFFF))
    raise ValueError(f"a table of characters with a key of more than {LONGEST_KEY} bytes")


def _children(units: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The units that any byte leads to, and which of the places each was reached from."""
    labels = np.arange(1, 256, dtype=np.int64)
    rows, reached = [], []
    for first in range(0, len(places), ROWS):
        children = places[first : first + ROWS, None] ^ labels  # (n, 255)
        inside = children < len(units)
        carried = units[np.where(inside, children, 0)] & np.uint32(0x800000FF)
        row, column = np.nonzero(inside & (carried == labels))
        rows.append(row + first)
        reached.append(children[row, column])
        if sum(map(len, reached)) > MOST:
            break
    return np.concatenate(rows), np.concatenate(reached)


def _offset(units: np.ndarray) -> np.ndarray:
    shift = (units & np.uint32(1 << 9)) >> np.uint32(6)
    return ((units >> np.uint32(10)) << shift).astype(np.int64)
