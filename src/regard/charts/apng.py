"""Pictures one after the other as one PNG that moves (APNG), which every browser shows and others see the first of.

    acTL   how many frames, how often
    fcTL   before each frame: its number, the box that it changes, how long it stays
    IDAT   the first frame, whole; fdAT  every later one, no more than what differs from the one before it

https://www.w3.org/TR/png-3/ sections 11.3.6 and 4.8.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2
KEPT, OVER = 0, 0  # what becomes of a frame after it, and how it is laid over: it stays, and hides what is below
MILLISECONDS = 1000


def apng(frames: Iterable[np.ndarray], count: int, seconds: float, loop: bool) -> bytes:
    """The bytes of a file of `count` frames (H, W, 3) of 8 bits, `seconds` each, once or for ever.

    No more than two frames are held at a time.
    """
    parts, number, before = [SIGNATURE], 0, None
    for frame in frames:
        high, wide, _ = frame.shape
        if before is None:
            parts.append(_chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, RGB, 0, 0, 0)))
            parts.append(_chunk(b"acTL", struct.pack(">II", count, 0 if loop else 1)))
        left, top, right, bottom = (0, 0, wide, high) if before is None else _changed(before, frame)
        box = (right - left, bottom - top, left, top)
        control = struct.pack(">I4IHHBB", number, *box, round(seconds * MILLISECONDS), MILLISECONDS, KEPT, OVER)
        parts.append(_chunk(b"fcTL", control))
        number += 1
        data = _compressed(frame[top:bottom, left:right])
        if before is None:
            parts.append(_chunk(b"IDAT", data))
        else:
            parts.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
            number += 1
        before = frame
    return b"".join([*parts, _chunk(b"IEND", b"")])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _compressed(pixels: np.ndarray) -> bytes:
    """Rows, each with the number of its filter before it: none, which is shortest for areas of one colour."""
    rows = pixels.reshape(len(pixels), -1)
    return zlib.compress(np.pad(rows, ((0, 0), (1, 0))).tobytes(), 9)


def _changed(before: np.ndarray, after: np.ndarray) -> tuple[int, int, int, int]:
    """The box of all that differs: left, top, right, bottom; one pixel where nothing does."""
    differs = (before != after).any(-1)
    rows, columns = (np.flatnonzero(differs.any(axis)) for axis in (1, 0))
    if not len(rows):
        return 0, 0, 1, 1
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
