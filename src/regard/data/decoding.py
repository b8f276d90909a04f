"""Bytes to text: a stream in lines or in pieces, what is no UTF-8 refused by its place."""

from __future__ import annotations

import io
from collections.abc import Iterator

from regard.data.encoding import guessed
from regard.errors import DataError

LINE_LIMIT = 16 * 1024 * 1024
HEAD = 1 << 16
PIECE = 1 << 20  # bytes of a file that are decoded at a time
# C0 but \t, \n, \v, \f, \r and escape, and DEL: a text has none of them, or few.
CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
# Of all bytes: control characters where they are no UTF-8, and, where they are, NUL and control characters.
SOME, MANY, MOST = 0.02, 0.05, 0.3


def lines(
    stream: io.BufferedIOBase,
    name: str,
    limit: int = LINE_LIMIT,
    advice: str = "break it up, or set documents = file",
) -> Iterator[str]:
    """The lines of a stream without their ends. Memory is bounded: a line of more than `limit` bytes is refused."""
    offset = 0
    number = 1
    for line in iter(lambda: stream.readline(limit + 2), b""):
        size = len(line)
        if line.endswith(b"\n"):
            line = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > limit:
            raise DataError(f"{name}, line {number}: longer than {limit:,} bytes; {advice}")
        yield decoded(line, name, offset, number)
        offset += size
        number += 1


def decoded_pieces(stream: io.BufferedReader, name: str) -> Iterator[str]:
    """The text of a stream in pieces that end with a whole character."""
    offset, line, rest = 0, 1, b""
    while chunk := stream.read(PIECE):
        data = rest + chunk
        stop = _whole_characters(data)
        yield decoded(data[:stop], name, offset, line)
        offset, line, rest = offset + stop, line + data.count(b"\n", 0, stop), data[stop:]
    if rest:
        yield decoded(rest, name, offset, line)


def _whole_characters(data: bytes) -> int:
    """Bytes without those of a character at the end that may go on."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:  # the first of several
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if needed > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def refuse_foreign(stream: io.BufferedReader, name: str) -> None:
    """Refuse what is not UTF-8 text by the look of its first bytes, with a better word than its first bad byte."""
    head = stream.peek(HEAD)
    odd = len(head) - len(head.translate(None, CONTROLS))
    is_some = 0 in head or odd > SOME * len(head)
    nulls = head.count(0)
    if (
        (nulls >= 16 and nulls > MANY * len(head))
        or (odd >= 256 and odd > MOST * len(head))
        or (is_some and not is_utf8_head(head))
    ):
        raise DataError(
            f"{name} looks binary: {odd:,} of its first {len(head):,} bytes are NUL or other control characters; give "
            f"a text file in UTF-8"
        )


def is_utf8_head(head: bytes) -> bool:
    """Whether bytes that may end within a character are text."""
    try:
        head[: _whole_characters(head)].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def decoded(data: bytes, name: str, offset: int, line: int) -> str:
    """The text of bytes that begin at `offset` on line `line` of the file; a mark at its very start is dropped."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff" if offset == 0 else "")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        found = guessed(data[error.start :])
        told = "" if found is None else f"; it looks like {found}"
        raise DataError(
            f"{name} is not UTF-8: byte 0x{data[error.start]:02X} at offset {offset + error.start} (line {line})"
            f"{told}; say data.encoding={found or 'NAME'}, or mend that line"
        ) from None
