"""A text stream as one that takes bytes."""

from __future__ import annotations

from typing import Any, TextIO

from regard.terminal.table import visible


class Decoded:
    """Takes whole texts in UTF-8 and hands them on as text: to a terminal, which nothing of it may command."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, data: bytes) -> int:
        text = data.decode("utf-8", "replace")
        self.stream.write(visible(text) if self.stream.isatty() else text)
        return len(data)

    def flush(self) -> None:
        self.stream.flush()


def byte_stream(stream: TextIO) -> Any:
    """What takes bytes for a stream: the one beneath it, unless it is a terminal, or text alone, as in a notebook."""
    stream.flush()
    beneath = None if stream.isatty() else getattr(stream, "buffer", None)
    return beneath or Decoded(stream)
