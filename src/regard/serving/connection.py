"""A connection of a browser: what comes over it in time, and whether somebody is still at its other end."""

from __future__ import annotations

import io
import select
import socket
import time
from typing import Any


class Incoming(io.RawIOBase):
    """Bytes of a connection up to a moment, however slowly they come: a byte now and then keeps nothing open."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.end = 0.0

    def within(self, seconds: float) -> None:
        """All that is read from now on has to be there within so many seconds."""
        self.end = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long to arrive")
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


def is_gone(connection: socket.socket) -> bool:
    """Whether the other end has closed the connection. What it may have sent meanwhile stays to be read."""
    try:
        if not select.select([connection], [], [], 0)[0]:
            return False
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except (OSError, ValueError):
        return True
