"""Files of word vectors, as GloVe and fastText write them: a line for each word, its numbers after it.

    2000000 300                      fastText says first how many there are, and how wide
    the 0.418 0.24968 -0.41242 ..

A word may hold blanks: its numbers are the last of a line. Of a word that comes twice the first line counts.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from regard.data.source import named
from regard.errors import DataError
from regard.storage.regular import open_regular

ENDINGS = (".txt", ".vec", ".txt.gz", ".vec.gz")
LONGEST_LINE = 1 << 20  # bytes
BLOCK = 1 << 14  # lines whose numbers are put together at a time


@dataclass(frozen=True, eq=False)
class WordVectors:
    """words, and their vectors (n, D) in the same order. read: lines of the file that hold one."""

    words: list[str]
    vectors: np.ndarray
    read: int

    @property
    def width(self) -> int:
        return self.vectors.shape[1]


def has_vectors(path: Path) -> bool:
    """Whether a file is called as those of word vectors are."""
    return path.is_file() and path.name.lower().endswith(ENDINGS)


def read_vectors(path: Path, wanted: Collection[str] | None = None) -> WordVectors:
    """The vectors of a file, or of those words of it alone that are wanted, so that a large file needs little room."""
    words: dict[str, int] = {}
    blocks: list[np.ndarray] = []
    rows: list[list[str]] = []
    width, read, promised = 0, 0, 0
    for number, line in enumerate(_lines(path), 1):
        fields = line.split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            promised, width = map(int, fields)
            if width < 1:
                raise DataError(f"{path}, line 1: says that vectors have {width} numbers; they have one or more")
            continue
        width = width or len(fields) - 1
        if width < 1 or len(fields) <= width:
            raise DataError(f"{path}, line {number}: has {len(fields) - 1} numbers, expected {width}")
        read += 1
        word = " ".join(fields[:-width])
        if not word or word in words or (wanted is not None and word not in wanted):
            continue
        words[word] = number
        rows.append(fields[-width:])
        if len(rows) == BLOCK:
            blocks.append(_numbers(path, rows, list(words.values())))
            rows = []
    if rows:
        blocks.append(_numbers(path, rows, list(words.values())))
    if not read:
        raise DataError(f"{path}: has no line of a word and its numbers")
    if read < promised:
        raise DataError(
            f"{path}: is cut short: its first line says {promised:,} words, and it has {read:,}; copy or download it "
            f"again"
        )
    vectors = np.concatenate(blocks) if blocks else np.zeros((0, width), np.float32)
    return WordVectors(list(words), vectors, read)


def _numbers(path: Path, rows: list[list[str]], lines: list[int]) -> np.ndarray:
    """The numbers of rows, those of the last of `lines`."""
    try:
        found = np.array(rows, dtype=np.float32)
    except ValueError:
        found = None
    if found is not None and np.isfinite(found).all():
        return found
    for row, number in zip(rows, lines[-len(rows) :], strict=True):
        for field in row:
            try:
                if np.isfinite(np.float32(field)):
                    continue
            except ValueError:
                pass
            raise DataError(f"{path}, line {number}: {field[:40]!r} is no number that a vector may have")
    raise DataError(f"{path}: some numbers are too large")


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    packed: Any = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else io.BufferedReader(raw)  # pyright: ignore
    return packed


def _lines(path: Path) -> Iterator[str]:
    """Lines of a file, packed or not, without their ends."""
    with named(str(path)), open_regular(path) as raw, _unpacked(path, raw) as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE:
                raise DataError(f"{path}, line {number}: is longer than {LONGEST_LINE:,} bytes")
            try:
                yield line.decode().rstrip(" \r\n")
            except UnicodeDecodeError:
                raise DataError(f"{path}, line {number}: is no UTF-8") from None
