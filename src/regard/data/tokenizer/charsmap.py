"""The table by which SentencePiece rewrites characters before it looks for pieces (Kudo and Richardson 2018, 3.2).

A table is bytes: how long its trie is (four bytes), the trie, and the strings that its leaves point to, each ended by a
zero. The trie is a double array: from unit u, byte c leads to unit u ^ offset(u) ^ c, if that unit carries c. At every
place of a text the longest key is replaced; what no key begins with stays.

A table in use has a quarter of a million keys, so that they are looked for and never listed.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from regard.errors import DataError

LARGEST = 1 << 23  # bytes of a table: those in use have a quarter of a million
LONGEST_KEY = 64  # bytes
ASCII = re.compile(rb"[ -~]+")
PLAIN = range(0x20, 0x7F)


@dataclass(frozen=True, eq=False)
class Charsmap:
    """units: of the trie, none where nothing is rewritten. strings: what its leaves point to.

    keeps_ascii  whether text of ASCII's signs alone stays as it is.
    """

    units: tuple[int, ...] = ()
    strings: bytes = b""
    keeps_ascii: bool = True

    def rewritten(self, text: str) -> str:
        """The text with every key replaced, the longest one first."""
        if not self.units or (self.keeps_ascii and text.isascii() and text.isprintable()):
            return text
        content, parts, place = text.encode(), [], 0
        while place < len(content):
            run = ASCII.match(content, place) if self.keeps_ascii else None
            # The last sign of a run may be one with what comes after it, such as an accent.
            if run is not None and run.end() - (run.end() < len(content)) > place:
                end = run.end() - (run.end() < len(content))
                parts.append(content[place:end])
                place = end
                continue
            length, value = self._longest(content, place)
            if value is None:
                length = _size(content[place])
                value = content[place : place + length]
            parts.append(value)
            place += length
        return b"".join(parts).decode()

    def _longest(self, content: bytes, place: int) -> tuple[int, bytes | None]:
        """The length in bytes of the longest key that begins at a place, and what it becomes; None without one."""
        units, node, found = self.units, _offset(self.units[0]), (0, -1)
        for length, byte in enumerate(content[place : place + LONGEST_KEY], 1):
            node ^= byte
            if node >= len(units) or units[node] & 0x800000FF != byte:
                break
            unit = units[node]
            node ^= _offset(unit)
            if unit & 1 << 8:
                if node >= len(units):
                    raise DataError("the tokenizer's table of characters is damaged; import its model again")
                found = length, units[node] & 0x7FFFFFFF
        length, start = found
        return (0, None) if start < 0 else (length, self._string(start))

    def _string(self, start: int) -> bytes:
        end = self.strings.find(b"\0", start)
        if end < 0:
            raise DataError("the tokenizer's table of characters points out of itself; import its model again")
        return self.strings[start:end]


def read_charsmap(content: bytes) -> Charsmap:
    """A table of its bytes; raises ValueError on what is none."""
    if not content:
        return Charsmap()
    if len(content) > LARGEST or len(content) < 8:
        raise ValueError(f"a table of characters of {len(content)} bytes")
    (size,) = struct.unpack_from("<I", content)
    if size % 4 or not 4 <= size <= len(content) - 4:
        raise ValueError("a table of characters whose trie does not fit into it")
    units, strings = struct.unpack_from(f"<{size // 4}I", content, 4), content[4 + size :]
    strings.decode()
    return Charsmap(units, strings, not _has_plain_key(units))


def _has_plain_key(units: tuple[int, ...]) -> bool:
    """Whether a key is made of ASCII's signs alone."""
    seen, waiting = set[int](), [_offset(units[0])]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        for byte in PLAIN:
            child = place ^ byte
            if child < len(units) and units[child] & 0x800000FF == byte:
                if units[child] & 1 << 8:
                    return True
                waiting.append(child ^ _offset(units[child]))
    return False


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _size(first: int) -> int:
    """Bytes of a character, by the first of them."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
