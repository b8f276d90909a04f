"""Connections with deadlines: uvicorn waits for a request, and for a reader, as long as it takes."""

from __future__ import annotations

import asyncio
from array import array
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

IN_TIME = 10.0  # seconds within which a request has come whole
READ_IN = 10.0  # seconds within which a reader that has fallen behind takes more
LEAST = 10_000  # bytes that it takes in that time, at least
READ_ALL = 600.0  # seconds within which it has caught up
MOST = 1024  # connections
OTHER_FILES = 64  # that a process has open beside its connections


class Deadlined(H11Protocol):
    """A connection that is cut when a request trickles in, and when nobody reads what is sent.

    Where there are too many the one that has said nothing whole for longest gives way: strangers without a key, who say
    nothing, keep nobody out. most: connections at once. silent_since: when the last request of it was answered.
    """

    most = MOST
    arriving: asyncio.TimerHandle | None = None
    stalled: asyncio.TimerHandle | None = None
    behind: asyncio.TimerHandle | None = None
    silent_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self.silent_since = self.loop.time()
        self._expect()
        if len(self.connections) > self.most:
            self._make_place()

    @property
    def is_silent(self) -> bool:
        """Whether nothing is being answered over it, as no whole request has come."""
        return self.arriving is not None or self.cycle is None or self.cycle.response_complete

    def on_response_complete(self) -> None:
        self.silent_since = self.loop.time()
        super().on_response_complete()

    def _make_place(self) -> None:
        """Cut the connection that has been silent for longest, be it this one."""
        silent = [one for one in self.connections if isinstance(one, Deadlined) and one.is_silent]
        longest = min(silent, key=lambda one: one.silent_since)
        self.connections.discard(longest)  # now, as more may come before it hears that it is lost
        longest._abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop("arriving")
        self._stop("stalled")
        self._stop("behind")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.arriving is None:
            self._expect()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop("arriving")

    def pause_writing(self) -> None:
        self.behind = self.loop.call_later(READ_ALL, self._abort)
        self._wait_for_reader()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop("stalled")
        self._stop("behind")
        super().resume_writing()

    def _wait_for_reader(self) -> None:
        self.stalled = self.loop.call_later(READ_IN, self._look_at_reader, self._left())

    def _look_at_reader(self, left: int) -> None:
        """Cut who has taken next to nothing. left: what was to be taken when it was looked last."""
        if left - self._left() < LEAST:
            self._abort()
        else:
            self._wait_for_reader()

    def _left(self) -> int:
        """Bytes that the reader has not taken, here and in the system."""
        transport: Any = self.transport
        return transport.get_write_buffer_size() + waiting_in_system(transport.get_extra_info("socket"))

    def _expect(self) -> None:
        self.arriving = self.loop.call_later(IN_TIME, self._abort)

    def _abort(self) -> None:
        transport: Any = self.transport
        transport.abort()

    def _stop(self, name: str) -> None:
        timer: asyncio.TimerHandle | None = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)


def waiting_in_system(connection: Any) -> int:
    """Bytes that a system keeps for the other end of a connection; 0 where it does not tell.

    It takes more from a program only when much of what it keeps has gone, which may be minutes for a slow reader.
    """
    count = array("i", [0])
    try:
        from fcntl import ioctl
        from termios import TIOCOUTQ

        ioctl(connection.fileno(), TIOCOUTQ, count)
    except (ImportError, OSError, AttributeError):
        return 0
    return count[0]


def connections_at_once() -> int:
    """MOST, or as many as this process may have files for, of which it asks for more where it has too few."""
    try:
        import resource
    except ImportError:  # Windows, where sockets are no files
        return MOST
    kind, wanted = resource.RLIMIT_NOFILE, MOST + OTHER_FILES
    soft, hard = resource.getrlimit(kind)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
        soft = resource.getrlimit(kind)[0]
    return MOST if soft == resource.RLIM_INFINITY else max(1, min(MOST, soft - OTHER_FILES))
