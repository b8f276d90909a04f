"""Connections with deadlines: uvicorn waits for a request, and for a reader, as long as it takes."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

IN_TIME = 10.0  # seconds within which a request has come whole
READ_IN = 10.0  # seconds within which a reader that has fallen behind reads on
MOST = 1024  # connections


class Deadlined(H11Protocol):
    """A connection that is cut when a request trickles in, and when nobody reads what is sent."""

    arriving: asyncio.TimerHandle | None = None
    stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.abort()
            return
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop("arriving")
        self._stop("stalled")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.arriving is None:
            self._expect()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop("arriving")

    def pause_writing(self) -> None:
        self.stalled = self.loop.call_later(READ_IN, self._abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop("stalled")
        super().resume_writing()

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
