"""Arrivals: prompts on their way into the slots, some at a time, chunk by chunk."""

from __future__ import annotations

from collections import deque

import torch

from regard.core.model import TokenModel
from regard.decoding.first_chunk import FirstChunks
from regard.decoding.logits import tokens_at_once
from regard.decoding.prefill import Prefill, begun, known_beginning, padded_length
from regard.decoding.prefix_cache import PrefixCache
from regard.decoding.row import Row


class Arrivals:
    """together  prompts that are read in one call at most.
    steady    how many rows a call always has; 0 for as many as there are.
    chunk     tokens of each that are read in one call.
    prefixes  what prompts may begin with, read before.
    rows      whose prompts are being read.
    """

    def __init__(
        self, model: TokenModel, device: torch.device, together: int, steady: bool, chunk: int, graphs: bool
    ) -> None:
        self.model, self.device, self.together, self.chunk = model, device, together, chunk
        self.steady = together if steady and together > 1 else 0
        self.first_chunks = FirstChunks(model, device, graphs) if self.steady else None
        self.prefixes: PrefixCache | None = None
        self.rows: list[Row] = []
        self._prefill: Prefill | None = None

    def advance(self, waiting: deque[Row], free: int) -> tuple[list[Row], Prefill] | None:
        """Read a chunk, of the first that wait and find one of the free slots where none are being read.

        What was read, and by whom, once it was their last. What nobody waits for any more is not read to its end.
        """
        if all(row.finish is not None for row in self.rows):
            self.rows, self._prefill = [], None
        if self._prefill is None:
            self.rows = self._next_in_queue(waiting, min(free, self.together))
            if not self.rows:
                return None
            self._prefill = begun(
                self.model, self.rows, self.device, self.chunk, self.prefixes, self.steady, self.first_chunks
            )
        prefill = self._prefill
        prefill.advance()
        if not prefill.done:
            return None
        rows, self.rows, self._prefill = self.rows, [], None
        return rows, prefill

    def close(self) -> None:
        """Give up what is being read, and the memory."""
        self.rows, self._prefill = [], None
        if self.first_chunks is not None:
            self.first_chunks.close()

    def _next_in_queue(self, waiting: deque[Row], most: int) -> list[Row]:
        """The first requests that can be read together."""
        group: list[Row] = []
        while waiting and len(group) < most and (not group or self._alike(group[0], waiting[0])):
            group.append(waiting.popleft())
        return group

    def _alike(self, one: Row, other: Row) -> bool:
        """Whether two requests begin with rows of one state and, where shapes are few, have the same."""
        if (one.start and one.start[0]) is not (other.start and other.start[0]):
            return False
        return not self.steady or self._shape(one) == self._shape(other)

    def _shape(self, row: Row) -> tuple[int, tuple[int, ...]]:
        """To what a prompt is padded, 0 for any number of whole chunks, and what of its beginning is known."""
        context, chunk = row.to_read(), tokens_at_once(self.model, self.steady, self.chunk)
        known = 0 if self.prefixes is None or row.start else known_beginning(context, chunk, self.prefixes)
        length = padded_length(self.model, len(context), chunk) if len(context) <= chunk else 0
        return length, tuple(context[:known])
