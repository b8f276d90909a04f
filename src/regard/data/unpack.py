"""Unpacking: the plain bytes of a .gz, .xz or .zst file, no more of them than a text of that size can be.

A few kilobytes can be made that unpack to terabytes. Text shrinks to a third or, where it repeats itself, to a
thirtieth: past a quarter of a gigabyte, what is more than a hundred times its file is refused.
"""

from __future__ import annotations

import gzip
import importlib
import io
import lzma
from collections.abc import Callable
from typing import Any

from regard.errors import DataError, UsageError

MOST_TIMES = 100
ALWAYS_ALLOWED = 1 << 28
PIECE = 1 << 20
# Packed bytes that are unpacked at a time: four of them can be made to stand for 128 KiB.
LITTLE = 1 << 10


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


class _Zstandard(io.RawIOBase):
    """The plain bytes of a .zst stream, whose last frame must be whole."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream, self.make = stream, _zstandard()
        self.frame, self.rest, self.packed = self.make(), b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            if self.frame.eof:
                self.packed, self.frame = self.frame.unused_data, self.make()
            self.packed = self.packed or self.stream.read(LITTLE)
            if not self.packed:
                return self._ended()
            self.rest, self.packed = self._unpacked(self.packed), b""
            self.began = not self.frame.eof
        taken, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def _ended(self) -> int:
        if self.began:
            raise EOFError
        return 0

    def _unpacked(self, data: bytes) -> bytes:
        try:
            return self.frame.decompress(data)
        except Exception as error:  # each of the two modules has an error of its own
            raise BadZstandard(str(error)) from None

    began = False


class BadZstandard(Exception):
    """Bytes that are no .zst file."""


def _zstandard() -> Callable[[], Any]:
    """What makes a decompressor: Python's own from 3.14 on, else that of `zstandard`."""
    try:
        return importlib.import_module("compression.zstd").ZstdDecompressor
    except ImportError:
        pass
    try:
        return importlib.import_module("zstandard").ZstdDecompressor().decompressobj
    except ImportError:
        raise UsageError(
            "reading .zst files needs Python 3.14 or zstandard, which is not installed; pip install 'regard[tables]'"
        ) from None


OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".zst": _Zstandard}
