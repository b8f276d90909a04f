"""What the server and its engine say to each other over a pipe: JSON, each message after its length in four bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Lock
from typing import IO, Any

HEAD = 4  # bytes of a length
LARGEST = 1 << 26  # bytes of a message

Message = dict[str, Any]


def packed(message: Message) -> bytes:
    body = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()
    return len(body).to_bytes(HEAD, "big") + body


class Outbox:
    """Messages written one after the other, whoever sends them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.lock = stream, Lock()

    def send(self, message: Message) -> None:
        content = packed(message)
        with self.lock:
            self.stream.write(content)
            self.stream.flush()


def messages(stream: IO[bytes]) -> Iterator[Message]:
    """Every message, until the other side is gone."""
    while len(head := stream.read(HEAD)) == HEAD:
        yield json.loads(stream.read(int.from_bytes(head, "big")))
