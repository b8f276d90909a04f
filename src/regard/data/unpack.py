"""Unpacking: the plain bytes of a .gz or .xz file, no more of them than a text of that size can be.

A few kilobytes can be made that unpack to terabytes. Text shrinks to a third or, where it repeats itself, to a
thirtieth: past a quarter of a gigabyte, what is more than a hundred times its file is refused.
"""

from __future__ import annotations

import gzip
import io
import lzma
from typing import Any

from regard.errors import DataError

OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
MOST_TIMES = 100
ALWAYS_ALLOWED = 1 << 28
PIECE = 1 << 20


def most_unpacked(packed: int) -> int:
    """How many bytes so many packed ones may become."""
    return max(ALWAYS_ALLOWED, MOST_TIMES * packed)


def too_much(name: str, packed: int) -> DataError:
    return DataError(
        f"{name} unpacks to more than {most_unpacked(packed):,} bytes, over {MOST_TIMES} times its {packed:,}; if you "
        f"trust it, unpack it yourself and give the plain file"
    )


class Unpacked(io.RawIOBase):
    """The plain bytes of a packed stream, counted. packed: the size of its file, name: of the file in messages."""

    def __init__(self, stream: Any, packed: int, name: str) -> None:
        super().__init__()
        self.stream, self.packed, self.name = stream, packed, name
        self.left = most_unpacked(packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        pieces = []
        while piece := self._next(PIECE):
            pieces.append(piece)
        return b"".join(pieces)

    def _next(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise too_much(self.name, self.packed)
        return data
