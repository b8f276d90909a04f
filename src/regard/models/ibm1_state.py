"""The state of IBM Model 1 while it writes: its source, and how much each word of it has said."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.state import RecentTokens, State


@dataclass(frozen=True)
class Told(State):
    """source (B, S): ids, -1 where there is none. said (B, S): how many words each has said. language: its own."""

    source: Tensor
    said: Tensor
    language: RecentTokens

    @property
    def position(self) -> Tensor:
        return self.language.position

    def reserve(self, length: int, memory: int | None = None) -> Told:
        return self if memory is None else self._with_room(memory)

    def insert(self, rows: Tensor, other: State) -> Told:
        assert isinstance(other, Told)
        room = max(self.source.shape[1], other.source.shape[1])
        own, new = self._with_room(room), other._with_room(room)
        source, said = own.source.index_copy(0, rows, new.source), own.said.index_copy(0, rows, new.said)
        return Told(source, said, self.language.insert(rows, other.language))

    def free(self, rows: Tensor) -> Told:
        source, said = self.source.index_fill(0, rows, -1), self.said.index_fill(0, rows, 0)
        return Told(source, said, self.language.free(rows))

    def _with_room(self, room: int) -> Told:
        more = (0, max(0, room - self.source.shape[1]))
        pad = torch.nn.functional.pad
        return dataclasses.replace(self, source=pad(self.source, more, value=-1), said=pad(self.said, more))
