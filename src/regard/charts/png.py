"""Pixels as the bytes of a PNG file, by the standard library alone: so pictures travel in a view, a page and an SVG.

(W3C 2003, Portable Network Graphics, second edition: a signature, then chunks of length, type, content and CRC.)
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, COLOURED = 0, 2  # what a pixel is: one byte, or three
UNFILTERED = np.uint8(0)


def encoded(pixels: np.ndarray) -> bytes:
    """A picture of unsigned bytes, (H, W) of grey or (H, W, 3) of red, green and blue."""
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels, dtype=np.uint8).reshape(height, -1)
    lines = np.concatenate([np.full((height, 1), UNFILTERED), rows], 1)
    kind = GREY if pixels.ndim == 2 else COLOURED
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + _chunk(b"IEND", b"")


def in_text(pixels: np.ndarray) -> str:
    """The same in base64, for JSON and for addresses of the kind data:."""
    return base64.b64encode(encoded(pixels)).decode("ascii")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
