"""Text as a stream of pieces that can be read again: however long it is, little of it is in memory.

    for text, ends in stream.pieces("reading"): ...          ends: a document ends after this piece

A document of a file is cut anywhere; `Cutter` moves the cuts to where no tokenizer can see them.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

from regard.core.progress import stage
from regard.data import source

OFTEN = 256  # lines between two looks at where the reading is


class Piece(NamedTuple):
    """A part of a document; `ends` says whether it is the last one."""

    text: str
    ends: bool


class TextStream(Protocol):
    """Documents, one after the other, from the beginning each time they are asked for."""

    def pieces(self, part: str) -> Iterator[Piece]:
        """part: what they are read for, which whoever watches is told."""
        ...


@dataclass(frozen=True)
class Texts:
    """Documents that are in memory."""

    documents: Sequence[str]

    def pieces(self, part: str) -> Iterator[Piece]:
        with stage(part, len(self.documents), "documents") as advance:
            for text in self.documents:
                yield Piece(text, True)
                advance(1)


@dataclass(frozen=True)
class Files:
    """The documents of a file or of a folder (see `source`)."""

    path: str
    kind: str = "auto"

    def pieces(self, part: str) -> Iterator[Piece]:
        names = source.files(self.path)
        with stage(part, _total(names), "bytes") as advance:
            for name in names:
                found = False
                before = 0
                with source.named(name), source.opened(name) as stream:
                    for number, piece in enumerate(source.pieces_of(stream, source.shown(name), self.kind)):
                        found = True
                        yield Piece(*piece)
                        if number % OFTEN == 0 or len(piece[0]) > OFTEN:
                            here = stream.tell()
                            advance(here - before)
                            before = here
                if not found:
                    raise source.empty(name)


class Cutter:
    """Pieces of documents brought to ends that no tokenizer can see: before a space or the end of a line.

    None has a token that goes on from a letter into a space. A document without such a place stays whole, and one of
    less than `size` characters too.
    """

    def __init__(self, size: int = source.PIECE) -> None:
        self.size = size
        self.waiting: list[str] = []
        self.held = 0

    def add(self, text: str, ends: bool) -> str:
        """What can be encoded now: everything up to the last such place, or to the end of the document."""
        self.held += len(text)
        place = len(text) if ends else _last_cut(text) if self.held >= self.size else -1
        if place < 0:
            self.waiting.append(text)
            return ""
        ready = "".join((*self.waiting, text[:place]))
        self.waiting, self.held = ([], 0) if ends else ([text[place:]], len(text) - place)
        return ready


@dataclass(frozen=True)
class Spooled:
    """The documents of standard input, which can be read once only: it is kept in a file without a name."""

    kind: str = "auto"

    @cached_property
    def _file(self) -> IO[bytes]:
        file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the stream
        with source.named(source.STDIN), source.opened(source.STDIN) as stream, stage("reading", 0, "bytes") as advance:
            while chunk := stream.read(source.PIECE):
                file.write(chunk)
                advance(len(chunk))
        return file

    def pieces(self, part: str) -> Iterator[Piece]:
        self._file.seek(0)
        stream = io.BufferedReader(cast(Any, self._file), source.HEAD)
        found = False
        try:
            for piece in source.pieces_of(stream, source.shown(source.STDIN), self.kind):
                found = True
                yield Piece(*piece)
        finally:
            stream.detach()
        if not found:
            raise source.empty(source.STDIN)


def _last_cut(text: str) -> int:
    """The last place with a character before it and a space or an end of line after it; -1 without one."""
    stop = len(text)
    while True:
        place = max(text.rfind(" ", 0, stop), text.rfind("\n", 0, stop))
        if place < 1:
            return -1
        if not text[place - 1].isspace():
            return place
        stop = place


def _total(names: Sequence[str]) -> int:
    """Bytes to be read, 0 where nobody knows how many come out of a compressed file or of a pipe."""
    if any(name == source.STDIN or Path(name).suffix.lower() in source.COMPRESSED for name in names):
        return 0
    return sum(Path(name).stat().st_size for name in names)
