"""A text stream as one of bytes: what lies beneath it, or itself where there is nothing beneath, as in a notebook."""

from __future__ import annotations

from typing import Any, TextIO


class Decoded:
    """Takes whole texts in UTF-8 and hands them on as text."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, data: bytes) -> int:
        self.stream.write(data.decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        self.stream.flush()


def byte_stream(stream: TextIO) -> Any:
    """What takes bytes for a stream."""
    stream.flush()
    return getattr(stream, "buffer", None) or Decoded(stream)
