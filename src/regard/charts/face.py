"""What a font file says of itself: its name, its letters, and whether it may be embedded.

Read from the tables of an OpenType file (`name`, `cmap` of formats 4 and 12, `OS/2`); no library is needed for that.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLLECTION = b"ttcf"
FAMILY = 1
# How a cmap is chosen: the platform and encoding of all of Unicode before those of its first 65,536 letters.
WHOLE, BASIC = ((3, 10), (0, 4), (0, 6)), ((3, 1), (0, 3), (0, 2), (0, 1), (0, 0))
USE, RESTRICTED, NOT_IN_PART, BITMAPS_ONLY = 0x000F, 0x0002, 0x0100, 0x0200  # of fsType
ITALIC, BOLD = 0x0001, 0x0020  # of fsSelection
OUTLINES = (b"glyf", b"CFF ", b"CFF2")
PICTURES = b"sbix"  # letters as pixels of a few sizes, which cannot be drawn in others


@dataclass(frozen=True)
class Face:
    """A font of a file. number: which of a collection's. starts, ends: the ranges of letters that it has."""

    path: Path
    family: str = ""
    number: int = 0
    bold: bool = False
    italic: bool = False
    embedding: int = 0
    starts: tuple[int, ...] = field(default=(), repr=False, hash=False, compare=False)
    ends: tuple[int, ...] = field(default=(), repr=False, hash=False, compare=False)

    def has(self, letter: str) -> bool:
        code = ord(letter)
        place = bisect_right(self.starts, code) - 1
        return place >= 0 and code <= self.ends[place]

    @property
    def may_be_embedded(self) -> bool:
        """Whether its maker lets a part of it lie in a document (OS/2, fsType)."""
        return (self.embedding & USE) != RESTRICTED and not self.embedding & (NOT_IN_PART | BITMAPS_ONLY)


def faces(path: Path) -> list[Face]:
    """The fonts of a file; none where it cannot be read as one, or has pixels in the place of outlines."""
    try:
        data = path.read_bytes()
        starts = [0]
        if data[:4] == COLLECTION:
            starts = list(struct.unpack_from(f">{struct.unpack_from('>I', data, 8)[0]}I", data, 12))
        return [_face(path, data, start, number) for number, start in enumerate(starts)]
    except (OSError, struct.error, ValueError, KeyError, IndexError):
        return []


def _face(path: Path, data: bytes, start: int, number: int) -> Face:
    (count,) = struct.unpack_from(">H", data, start + 4)
    tables: dict[bytes, int] = {}
    for place in range(count):
        tag, _, offset, _ = struct.unpack_from(">4sIII", data, start + 12 + 16 * place)
        tables[tag] = offset
    if PICTURES in tables or not any(table in tables for table in OUTLINES):
        raise ValueError(f"{path}: no letter of it can be drawn in every size")
    held = sorted(_ranges(data, tables[b"cmap"]))
    facts: dict[str, Any] = {}
    if b"OS/2" in tables:
        (facts["embedding"],) = struct.unpack_from(">H", data, tables[b"OS/2"] + 8)
        (selection,) = struct.unpack_from(">H", data, tables[b"OS/2"] + 62)
        facts |= {"bold": bool(selection & BOLD), "italic": bool(selection & ITALIC)}
    family = _family(data, tables[b"name"]) if b"name" in tables else ""
    starts, ends = (tuple(one[side] for one in held) for side in (0, 1))
    return Face(path, family or path.stem, number, starts=starts, ends=ends, **facts)


def _family(data: bytes, table: int) -> str:
    _, count, texts = struct.unpack_from(">3H", data, table)
    for place in range(count):
        platform, _, _, name, length, offset = struct.unpack_from(">6H", data, table + 6 + 12 * place)
        if name == FAMILY and platform in (0, 3):
            text = data[table + texts + offset : table + texts + offset + length]
            return text.decode("utf-16-be", "replace")
    return ""


def _ranges(data: bytes, table: int) -> Iterator[tuple[int, int]]:
    """First and last letter of every run of letters that have a shape."""
    (count,) = struct.unpack_from(">H", data, table + 2)
    found: dict[tuple[int, int], int] = {}
    for place in range(count):
        platform, encoding, offset = struct.unpack_from(">HHI", data, table + 4 + 8 * place)
        found[platform, encoding] = table + offset
    chosen = next((found[kind] for kind in (*WHOLE, *BASIC) if kind in found), None)
    if chosen is None:
        return
    (form,) = struct.unpack_from(">H", data, chosen)
    if form == 12:
        (groups,) = struct.unpack_from(">I", data, chosen + 12)
        for place in range(groups):
            first, last, _ = struct.unpack_from(">3I", data, chosen + 16 + 12 * place)
            yield first, last
    elif form == 4:
        yield from _segments(data, chosen)


def _segments(data: bytes, table: int) -> Iterator[tuple[int, int]]:
    """Runs of a cmap of format 4; a letter of a segment may be that of no shape."""
    (twice,) = struct.unpack_from(">H", data, table + 6)
    columns = [f">{twice // 2}H", f">{twice // 2}H", f">{twice // 2}H", f">{twice // 2}H"]
    places = [table + 14, table + 16 + twice, table + 16 + 2 * twice, table + 16 + 3 * twice]
    ends, starts, deltas, offsets = (struct.unpack_from(*one) for one in zip(columns, [data] * 4, places, strict=True))
    for place, (first, last, delta, offset) in enumerate(zip(starts, ends, deltas, offsets, strict=True)):
        last = min(last, 0xFFFE)  # the segment that ends all has no letter
        if not offset:
            none = -delta % 65536  # the one letter of the segment whose shape would be that of no letter
            around = ((first, none - 1), (none + 1, last)) if first <= none <= last else ((first, last),)
            yield from (run for run in around if run[0] <= run[1])
            continue
        shapes = places[3] + 2 * place + offset
        for code in range(first, last + 1):
            (shape,) = struct.unpack_from(">H", data, shapes + 2 * (code - first))
            if shape and (shape + delta) % 65536:
                yield code, code
