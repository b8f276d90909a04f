"""Text that a command is given: as an argument, or from stdin."""

from __future__ import annotations

import sys

from regard.errors import DataError


def given_text(argument: str | None) -> str | None:
    """The argument, or all of stdin when there is none and somebody pipes; `-` asks for stdin. None: nothing given.

    The newline with which a pipe ends is not part of the text.
    """
    if argument is not None and argument != "-":
        return checked(argument, "the text")
    if argument is None and sys.stdin.isatty():
        return None
    return read_stdin().removesuffix("\n")


def read_stdin() -> str:
    """All of stdin, strictly UTF-8."""
    data = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"stdin: not UTF-8 at byte {error.start}, line {line}; convert it first") from None


def checked(text: str, where: str) -> str:
    """The text, refused when it has bytes that are no characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: not UTF-8 at character {error.start}") from None
    return text
