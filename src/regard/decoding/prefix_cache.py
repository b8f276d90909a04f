"""Prefix cache: states after beginnings that several prompts share, so that they are read once.

A state is a value that no call changes, so that any number of rows may go on from it. Kept by the tokens that were
read; the ones not used for longest go when there is no more room.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from regard.core.state import State


class PrefixCache:
    """States of one row by the tokens that they have seen, `room` bytes in all.

    Tokens are those that the host knows: no device is asked for them.

    hits, read  beginnings that were found, and tokens that need not be read again.
    """

    def __init__(self, room: int) -> None:
        self.room, self.nbytes = room, 0
        self.states: OrderedDict[bytes, State] = OrderedDict()
        self.hits = self.read = 0

    def has(self, tokens: Sequence[int]) -> bool:
        """Whether the state after these tokens is known; nothing is counted."""
        return _key(tokens) in self.states

    def get(self, tokens: Sequence[int]) -> State | None:
        """The state after these tokens, if it is known."""
        key = _key(tokens)
        if key not in self.states:
            return None
        self.states.move_to_end(key)
        self.hits += 1
        self.read += len(tokens)
        return self.states[key]

    def put(self, tokens: Sequence[int], made: Callable[[], State]) -> None:
        """Keep the state after these tokens, made if it is not known, if there is room for it at all."""
        key = _key(tokens)
        if key in self.states:
            return
        state = made()
        if state.nbytes > self.room:
            return
        self.states[key] = state
        self.nbytes += state.nbytes
        while self.nbytes > self.room:
            _, gone = self.states.popitem(last=False)
            self.nbytes -= gone.nbytes

    def clear(self) -> None:
        self.states.clear()
        self.nbytes = 0


def _key(tokens: Sequence[int]) -> bytes:
    return np.array(tokens, dtype=np.int64).tobytes()
