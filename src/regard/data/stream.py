"""Text as a stream of pieces that can be read again: however long it is, little of it is in memory.

    for text, ends in stream.pieces("reading"): ...          ends: a document ends after this piece

A document of a file is cut anywhere; `Cutter` moves the cuts to where no tokenizer can see them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

from regard.core.progress import OFTEN, stage
from regard.data import decoding, source
from regard.errors import DataError
from regard.storage.arrays import kept, unnamed


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


class Files:
    """The documents of a file, of a folder or of standard input (see `source`).

    What cannot be read twice, or costs much to read, as standard input and compressed files do, is kept in a file
    without a name when it is first read.
    """

    def __init__(self, path: str, kind: str = "auto", encoding: str | None = None) -> None:
        self.path, self.kind, self.encoding = path, kind, encoding
        self._kept: dict[str, IO[bytes]] = {}
        self._seen: dict[str, tuple[int, int]] = {}

    def pieces(self, part: str) -> Iterator[Piece]:
        names = source.files(self.path)
        self._require_unchanged(names)
        for name in names:
            if name == source.STDIN or Path(name).suffix.lower() in source.COMPRESSED:
                self._keep(name)
        with stage(part, sum(map(self._size, names)), "bytes") as advance:
            for name in names:
                found = False
                before = 0
                with source.named(name), self._opened(name) as stream:
                    for number, piece in enumerate(source.pieces_of(stream, source.shown(name), self.kind)):
                        found = True
                        yield Piece(*piece)
                        if number % OFTEN == 0 or len(piece[0]) > OFTEN:
                            here = stream.tell()
                            advance(here - before)
                            before = here
                if not found:
                    raise source.empty(name)
        self._require_unchanged(names)

    def _require_unchanged(self, names: Sequence[str]) -> None:
        """Refuse files that are others than when they were first read, by their names, sizes and times."""
        found = dict[str, tuple[int, int]]()
        for name in names:
            if name != source.STDIN:
                with source.named(name):
                    about = Path(name).stat()
                found[name] = (about.st_size, about.st_mtime_ns)
        before, self._seen = self._seen or found, found
        for name in sorted(before.keys() ^ found.keys()) + [
            name for name in names if before.get(name) != found.get(name)
        ]:
            raise DataError(
                f"{source.shown(name)} changed while it was read: leave the files alone until training has begun"
            )

    def _keep(self, name: str) -> None:
        if name in self._kept:
            return
        with (
            source.named(name),
            source.opened(name, self.encoding) as stream,
            stage("unpacking", 0, "bytes") as advance,
        ):
            file = unnamed()
            while chunk := stream.read(decoding.PIECE):
                kept(file, chunk)
                advance(len(chunk))
        self._kept[name] = file

    def _size(self, name: str) -> int:
        return self._kept[name].tell() if name in self._kept else Path(name).stat().st_size

    @contextmanager
    def _opened(self, name: str) -> Iterator[io.BufferedReader]:
        if name not in self._kept:
            with source.opened(name, self.encoding) as stream:
                yield stream
            return
        self._kept[name].seek(0)
        stream = io.BufferedReader(cast(Any, self._kept[name]), decoding.HEAD)
        try:
            yield stream
        finally:
            stream.detach()
            self._kept[name].seek(0, io.SEEK_END)


class Cutter:
    """Pieces of documents brought to ends that no tokenizer can see: before a space or the end of a line.

    None has a token that goes on from a letter into a space. A document without such a place stays whole, and one of
    less than `size` characters too.
    """

    def __init__(self, size: int = decoding.PIECE) -> None:
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
