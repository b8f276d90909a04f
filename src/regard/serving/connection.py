"""A connection of a browser: what comes over it in time, and whether somebody is still at its other end."""

from __future__ import annotations

import io
import select
import socket
import time
from typing import Any

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
BETWEEN = 1.0  # seconds between two of them
# Nothing is read there that has not come, and a line is written that fits; so Windows, which has no such flag, does
# without.
WITHOUT_WAITING = getattr(socket, "MSG_DONTWAIT", 0)


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
            if _is_broken(self.connection):
                return True
            if _has_news(self.connection) and self.connection.recv(1, socket.MSG_PEEK | WITHOUT_WAITING) == b"":
                self._tell()
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            return True
        return False

    def _tell(self) -> None:
        if self.may_be_told and time.monotonic() - self.told >= BETWEEN:
            self.told = time.monotonic()
            self.connection.send(INTERIM, WITHOUT_WAITING)


def _is_broken(connection: socket.socket) -> bool:
    """Whether the system knows that nobody is at the other end; Windows tells it to who reads."""
    if not hasattr(select, "poll"):
        return connection.fileno() < 0
    poll = select.poll()
    poll.register(connection, 0)
    return any(events & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0))


def _has_news(connection: socket.socket) -> bool:
    """Whether reading would not wait: something has come, or the end."""
    if not hasattr(select, "poll"):
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
