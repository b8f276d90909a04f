"""What the server and its engine say to each other over a pipe: JSON, each message after its length in four bytes."""

from __future__ import annotations

import json
import sys
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
    """Every message, until the other side is gone, be it in the middle of one."""
    while len(head := stream.read(HEAD)) == HEAD:
        size = int.from_bytes(head, "big")
        if len(body := stream.read(size)) < size:
            return
        yield json.loads(body)


def module_command(name: str) -> list[str]:
    """What starts a module in a process of its own. -P: a torch.py that lies in the current folder is not imported."""
    return [sys.executable, "-P", "-m", name]
