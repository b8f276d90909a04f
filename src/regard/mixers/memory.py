"""The state of what looks at a memory: its keys and values, worked out once (mixers/cross.py).

Rows that are copies of one, as those of a beam, look at one memory together: it is kept once, and their queries stand
side by side. In a reserved state each row has one of its own, so that rows can come and go.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.state import State
from regard.mixers.kv_cache import put_rows, with_room


@dataclass(frozen=True)
class MemoryState(State):
    """keys (N, S, H, K), values (N, S, H, V) of N memories, and how many are real; S is 0 before one was met.

    place     (B,) where a row's queries stand among those of all memories, `width` for each: row b looks at memory
              place[b] // width.
    even      whether place is 0, 1, 2 .., so that queries stand where they are.
    padded    whether some vectors may not be real.
    hollow    whether some memory may have no real one at all.
    reserved  whether each row has a memory of its own with room for S vectors, owned by the caller and written in
              place. It takes its memories by `insert` and meets no other.
    """

    keys: Tensor
    values: Tensor
    lengths: Tensor
    place: Tensor
    count: Tensor
    width: int = 1
    even: bool = True
    padded: bool = False
    hollow: bool = False
    reserved: bool = False

    @property
    def position(self) -> Tensor:
        return self.count

    @property
    def owner(self) -> Tensor:
        """(B,) the memory that a row looks at."""
        return self.place // self.width

    def select(self, index: Tensor) -> MemoryState:
        """Rows `index`: a memory goes when nobody looks at it any more, and is copied only where it is reserved."""
        if self.reserved:
            return dataclasses.replace(super().select(index), place=torch.arange(len(index), device=index.device))
        before = self.owner
        owner, count = before[index], self.count[index]
        if torch.equal(owner, before):
            return dataclasses.replace(self, count=count)
        used, owner = owner.unique(return_inverse=True)
        place, width = _places(owner, len(used))
        even = len(place) == len(used) * width and torch.equal(place, torch.arange(len(place), device=place.device))
        state = dataclasses.replace(self, place=place, count=count, width=width, even=even)
        if len(used) == len(self.keys):
            return state
        keys, values, lengths = self.keys[used], self.values[used], self.lengths[used]
        return dataclasses.replace(state, keys=keys, values=values, lengths=lengths)

    def reserve(self, length: int, memory: int | None = None) -> MemoryState:
        return self if memory is None else dataclasses.replace(self._one_each(memory), reserved=True)

    def insert(self, rows: Tensor, other: State) -> MemoryState:
        assert isinstance(other, MemoryState)
        slots, room = other.keys.shape[1], self.keys.shape[1]
        if self.reserved and slots > room:
            raise ValueError(f"a memory of {slots} vectors cannot be inserted into {room}: reserve more")
        if slots == 0 < room:
            raise ValueError("a row must have met its memory before it is inserted among rows that have met theirs")
        state, own = self if self.reserved else self._one_each(slots), other.owner
        put_rows(state.keys, rows, other.keys[own])
        put_rows(state.values, rows, other.values[own])
        lengths = state.lengths.index_copy(0, rows, other.lengths[own])
        return dataclasses.replace(state, lengths=lengths, count=self.count.index_copy(0, rows, other.count))

    def free(self, rows: Tensor) -> MemoryState:
        """Rows without a memory too: what they look at is nothing."""
        state = self if self.reserved else self._one_each(0)
        state.keys.index_fill_(0, rows, 0)
        state.values.index_fill_(0, rows, 0)
        lengths, count = state.lengths.index_fill(0, rows, 0), self.count.index_fill(0, rows, 0)
        return dataclasses.replace(state, lengths=lengths, count=count)

    def _one_each(self, room: int) -> MemoryState:
        """A copy in which every row has a memory of its own, with at least `room` slots."""
        own, room = self.owner, max(room, self.keys.shape[1])
        keys, values = with_room(self.keys[own], room), with_room(self.values[own], room)
        place = torch.arange(own.shape[0], device=own.device)
        return MemoryState(keys, values, self.lengths[own], place, self.count, padded=True, hollow=True)

    def typed_as(self, before: MemoryState) -> MemoryState:
        """The same with keys and values in the number type that the state had before."""
        keys, values = self.keys.to(before.keys.dtype), self.values.to(before.values.dtype)
        return dataclasses.replace(self, keys=keys, values=values)

    def together(self, rows: Tensor) -> Tensor:
        """Rows (B, T, ...) as (N, width * T, ...): those that look at one memory side by side."""
        if self.width == 1 and self.even:
            return rows
        if not self.even:
            room = rows.new_zeros(len(self.keys) * self.width, *rows.shape[1:])
            rows = room.index_copy(0, self.place, rows)
        return rows.unflatten(0, (-1, self.width)).flatten(1, 2)

    def apart(self, groups: Tensor) -> Tensor:
        """The inverse of `together`."""
        if self.width == 1 and self.even:
            return groups
        rows = groups.unflatten(1, (self.width, -1)).flatten(0, 1)
        return rows if self.even else rows[self.place]


def _places(owner: Tensor, n_memories: int) -> tuple[Tensor, int]:
    """For rows that look at the memories `owner` (B,) a place of its own for each, and how many a memory has."""
    sizes = torch.bincount(owner, minlength=n_memories)
    width = max([1, *sizes.tolist()])
    order = owner.argsort(stable=True)
    first = (sizes.cumsum(0) - sizes)[owner[order]]
    turn = torch.empty_like(owner).index_copy(0, order, torch.arange(len(owner), device=owner.device) - first)
    return owner * width + turn, width
