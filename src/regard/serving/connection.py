"""A connection of a browser: what comes over it in time, and whether somebody is still at its other end."""

from __future__ import annotations

import io
import select
import socket
import time
from typing import Any

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
BETWEEN = 1.0  # seconds between two of them


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


class Asker:
    """Who asked over a connection, and whether somebody still waits there for the answer.

    One who has left and one who has said all there was to say, and reads on, look alike: both have ended their side.
    They are told apart by an interim answer, which a client of HTTP/1.1 passes over (RFC 9110, 15.2): where nobody is
    left to take it the connection breaks. may_be_told: whether the client is one that knows such answers.
    """

    def __init__(self, connection: socket.socket, *, may_be_told: bool) -> None:
        self.connection, self.may_be_told = connection, may_be_told
        self.told = -BETWEEN

    def is_gone(self) -> bool:
        """Whether the connection is broken. What may have come over it meanwhile stays to be read."""
        try:
            poll = select.poll()
            poll.register(self.connection, select.POLLIN)
            happened = sum(events for _, events in poll.poll(0))
            if happened & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                return True
            if happened and self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                self._tell()
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            return True
        return False

    def _tell(self) -> None:
        if self.may_be_told and time.monotonic() - self.told >= BETWEEN:
            self.told = time.monotonic()
            self.connection.send(INTERIM, socket.MSG_DONTWAIT)
