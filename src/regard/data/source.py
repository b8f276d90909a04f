"""Reading text: files, folders, patterns such as part-*.txt and standard input, as documents of strict UTF-8.

What is in another encoding is turned into UTF-8 on the way (see `encoding`).

A line ends at \\n or \\r\\n and nowhere else; `lines` is the one place where that is decided. (`str.splitlines` also
cuts at eight other characters, the classic cause of parallel files that drift apart.)
"""

from __future__ import annotations

import difflib
import glob
import gzip
import hashlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from regard.core.progress import OFTEN, stage
from regard.data.decoding import HEAD, decoded_pieces, lines, refuse_foreign
from regard.data.encoding import Transcoded, marked
from regard.data.unpack import OPENERS, BadZstandard, Unpacked
from regard.errors import DataError, ResourceError, UsageError, nearest
from regard.storage.arrays import kept, unnamed
from regard.storage.regular import NotRegular, open_regular

STDIN = "-"
SUFFIXES = (".txt", ".md")
COMPRESSED = tuple(OPENERS)
# Data that is named file by file.
ONE_BY_ONE = (".tsv", ".csv", ".json", ".jsonl", ".parquet", ".xlsx", ".conll", ".conllu", ".npz")
PATTERN = "*?["
# What lies in the folder of a run, and in that of a comparison: the texts beside it were written, not given.
RUN = ("config.json", "manifest.json")
COMPARISON = ("comparison.json", "report.json")
DOCUMENTS = ("auto", "file", "line", "blank")


def read_documents(path: str, *, documents: str = "auto", encoding: str | None = None) -> Iterator[str]:
    """The documents of a file, of all text files below a folder in sorted order, or of standard input ("-").

    file (and auto)  a whole file is a document, kept as it is.
    line             a line is a document, without its end; empty lines are none.
    blank            lines up to the next blank one are a document, joined by \\n.
    """
    if documents not in DOCUMENTS:
        raise UsageError(f"documents = {documents!r} is not a choice{nearest(documents, DOCUMENTS)}")
    for file in files(path):
        gathered: list[str] = []
        found = False
        with named(file), opened(file, encoding) as stream:
            for text, ends in pieces_of(stream, shown(file), documents):
                gathered.append(text)
                if ends:
                    found = True
                    yield "".join(gathered)
                    gathered = []
        if not found:
            raise empty(file)


def empty(file: str) -> DataError:
    return DataError(f"{shown(file)} is empty: give a file with text, or remove it from the folder")


def files(path: str) -> list[str]:
    """The files that `path` stands for. A folder: every .txt and .md below it, also compressed, hidden ones aside.

    What runs and comparisons below the folder wrote is no data: a model would learn from samples of another one.
    A name with * or ? or [ in it that is no file's own stands for all that match, sorted.
    """
    place = Path(path)
    if path == STDIN:
        return [path]
    if is_pattern(path):
        found = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())
        if not found:
            raise DataError(f"no file matches {path}; check the pattern, and put it in quotes")
        return found
    with named(path):
        if place.is_dir():
            found = sorted(
                str(file)
                for file in place.rglob("*")
                if _is_text(file.relative_to(place)) and file.is_file() and not _is_written(file.parent)
            )
            if not found:
                if _is_written(place):
                    raise DataError(f"{path} is a run or a comparison, and no data: regard show {path} tells its own")
                kinds = " ".join(SUFFIXES)
                also = " ".join(COMPRESSED)
                raise DataError(f"the folder {path} holds no text files ({kinds}, also with {also}){_within(place)}")
            return found
        if not place.exists():
            raise DataError(f"there is no file {path}{_close(place)}")
    return [path]


def n_bytes(path: str) -> int:
    """The bytes of all files that `path` stands for; 0 of what is no file."""
    if path == STDIN or not (is_pattern(path) or Path(path).exists()):
        return 0
    return sum(Path(file).stat().st_size for file in files(path))


def is_pattern(path: str) -> bool:
    """Whether a name stands for all files that match it."""
    return any(mark in path for mark in PATTERN) and not Path(path).exists()


def read_lines(path: str, *, encoding: str | None = None) -> Iterator[str]:
    """The lines of one file or of standard input without their ends, empty ones included; at least one."""
    if path != STDIN and Path(path).is_dir():
        raise DataError(f"{path} is a folder: name one file in it")
    files(path)
    number = before = 0
    is_plain = path != STDIN and Path(path).suffix.lower() not in COMPRESSED
    size = Path(path).stat().st_size if is_plain else 0
    with named(path), opened(path, encoding) as stream, stage("reading", size, "bytes") as advance:
        refuse_foreign(stream, shown(path))
        for number, line in enumerate(lines(stream, shown(path), advice="break it up"), 1):
            yield line
            if number % OFTEN == 0 and is_plain:
                here = stream.tell()
                advance(here - before)
                before = here
    if not number:
        raise DataError(f"{shown(path)} is empty: give a file with at least one line")


def plain(path: str) -> Path:
    """The path without the ending of a compressed file, so that its suffix tells what is inside."""
    place = Path(path)
    return place.with_suffix("") if place.suffix.lower() in COMPRESSED else place


def fingerprint(path: str) -> str:
    """SHA-256 over the names below `path` and the bytes of all its files: equal when they read the same."""
    total = hashlib.sha256()
    for file in files(path):
        relative = Path(file).relative_to(path).as_posix() if Path(path).is_dir() else Path(file).name * (file != path)
        with named(file), open_regular(file) as stream:
            content = hashlib.file_digest(io.BufferedReader(stream), "sha256").hexdigest()
        total.update(f"{relative}\0{Path(file).suffix}\0{content}\n".encode())
    return total.hexdigest()


def pieces_of(stream: io.BufferedReader, name: str, documents: str) -> Iterator[tuple[str, bool]]:
    """The documents of a stream in pieces, with whether a document ends after each."""
    refuse_foreign(stream, name)
    if documents == "line":
        yield from ((line, True) for line in lines(stream, name) if line)
    elif documents == "blank":
        yield from ((paragraph, True) for paragraph in _paragraphs(lines(stream, name)))
    else:
        last = ""
        for text in decoded_pieces(stream, name):
            if last:
                yield last, False
            last = text
        if last:
            yield last, True


def _paragraphs(rows: Iterator[str]) -> Iterator[str]:
    gathered: list[str] = []
    for row in rows:
        if row.strip(" \t"):
            gathered.append(row)
        elif gathered:
            yield "\n".join(gathered)
            gathered = []
    if gathered:
        yield "\n".join(gathered)


@contextmanager
def opened(file: str, encoding: str | None = None) -> Iterator[io.BufferedReader]:
    """A stream of the bytes of a text in UTF-8, with `peek`. encoding: that of the file; None: as its mark says."""
    with unpacked(file) as stream:
        other = encoding or marked(stream.peek(HEAD)[:HEAD])
        if other is None or other == "utf-8":
            yield stream
        else:
            yield io.BufferedReader(Transcoded(stream, other, shown(file)), HEAD)


@contextmanager
def unpacked(file: str) -> Iterator[io.BufferedReader]:
    """A stream of the plain bytes as they are, with `peek`."""
    if file == STDIN:
        reader = io.BufferedReader(cast(Any, _standard_input()), HEAD)
        try:
            yield reader
        finally:
            reader.detach()
    else:
        opener = OPENERS.get(Path(file).suffix.lower())
        with open_regular(file) as raw:
            if opener is None:
                yield io.BufferedReader(raw, HEAD)
                return
            size = os.fstat(raw.fileno()).st_size
            with io.BufferedReader(raw, HEAD) as packed, opener(packed) as plain:
                yield io.BufferedReader(Unpacked(plain, size, shown(file)), HEAD)


_READ: list[tuple[Any, IO[bytes]]] = []  # the standard input that was read, and a file without a name that holds it


def _standard_input() -> IO[bytes]:
    """All of standard input, from its beginning: it comes once, and is looked at before it is read."""
    if not _READ or _READ[0][0] is not sys.stdin:
        file = unnamed()
        while chunk := sys.stdin.buffer.read(1 << 20):
            kept(file, chunk)
        _READ[:] = [(sys.stdin, file)]
    file = _READ[0][1]
    file.seek(0)
    return file


@contextmanager
def named(file: str) -> Iterator[None]:
    """Failures of reading, in the words of somebody who has the file before them."""
    name = shown(file)
    try:
        yield
    except EOFError:
        raise DataError(f"{name} is cut short: its compressed data ends too early; copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, BadZstandard) as error:
        raise DataError(f"{name} is no good {Path(file).suffix} file ({error}); copy or download it again") from None
    except NotRegular as error:
        raise DataError(f"{name} {error.strerror}: save what it gives to a file, or pipe it in as {STDIN}") from None
    except FileNotFoundError:
        raise DataError(f"there is no file {name}{_close(Path(file))}") from None
    except OSError as error:
        raise ResourceError(f"cannot read {name}: {error.strerror or error}; check its permissions") from None


def _close(place: Path) -> str:
    """A hint with the nearest name in the same folder."""
    try:
        names = [entry.name for entry in place.parent.iterdir()]
    except OSError:
        return f": there is no folder {place.parent} either"
    close = difflib.get_close_matches(place.name, names, n=1)
    return f", did you mean {place.parent / close[0]}?" if close else f" in {place.parent.resolve()}"


def _within(folder: Path) -> str:
    """A hint with a file of the folder that is data of another kind, or with what else can be given."""
    found = sorted(file for file in folder.iterdir() if plain(str(file)).suffix.lower() in ONE_BY_ONE)
    return f"; name the file itself: {found[0]}" if found else "; give a file, a folder of texts or world:NAME"


def _is_written(folder: Path) -> bool:
    """Whether a folder is a run or a comparison."""
    return any(all((folder / name).is_file() for name in names) for names in (RUN, COMPARISON))


def _is_text(file: Path) -> bool:
    return plain(str(file)).suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in file.parts)


def shown(file: str) -> str:
    """The name of a file in messages."""
    return "standard input" if file == STDIN else file
