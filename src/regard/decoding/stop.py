"""Text as it comes: from token ids to characters that may be shown, and where a stop string ends it.

What is shown does not depend on how the text was cut into tokens. A tail that may yet grow into a stop string is held
back; the stop string that is completed first ends the text, and neither it nor what follows is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from regard.errors import UsageError


@runtime_checkable
class Streamer(Protocol):
    """Turns ids into text one by one and never gives half a character; `regard.data.tokenizer.streamer` makes one."""

    def push(self, token: int, /) -> str: ...

    def finish(self) -> str: ...


class StopFilter:
    """Lets text through up to the first stop string."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        if any(not stop for stop in stops):
            raise UsageError("a stop string must not be empty")
        self.stops = tuple(stops)
        self.held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """What may be shown now that `text` has come."""
        if self.stopped:
            return ""
        text = self.held + text
        ends = [(text.find(stop) + len(stop), text.find(stop)) for stop in self.stops if stop in text]
        if ends:
            self.stopped, self.held = True, ""
            return text[: min(ends)[1]]
        kept = len(text) - max((_overlap(text, stop) for stop in self.stops), default=0)
        self.held = text[kept:]
        return text[:kept]

    def finish(self) -> str:
        """What was held back, now that nothing more comes."""
        held, self.held = self.held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest beginning of `stop` with which `text` ends."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
