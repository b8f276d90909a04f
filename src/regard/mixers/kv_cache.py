"""The state of attention: keys and values of all positions so far (kv cache).

Slot p holds the key and the value of position p, so that a state means the same whatever batch it was made in. One
that grows is a value: appending copies. A reserved one has a fixed number of slots, which are written in place at each
row's own position. Where rows stand is known to the device alone; a CPU can be asked at once, so that there only slots
in use are looked at, and a token without a slot is refused.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core.state import State, advance


class Bounds(NamedTuple):
    """Positions between which all rows of a state stand, as far as is known without waiting for a device."""

    low: int
    high: int

    @property
    def level(self) -> bool:
        """Whether all rows are known to stand at one position."""
        return self.low == self.high


@dataclass(frozen=True)
class KeyValueState(State):
    """keys, values (B, S, G, K): slot p belongs to position p; slots from a row's position on are undefined numbers.

    ragged    whether rows may stand at different positions.
    reserved  whether the S slots are all there will be, owned by the caller and written in place.
    """

    keys: Tensor
    values: Tensor
    count: Tensor
    ragged: bool = False
    reserved: bool = False

    @property
    def position(self) -> Tensor:
        return self.count

    @property
    def bounds(self) -> Bounds:
        slots = self.keys.shape[1]
        if not self.reserved:
            return Bounds(0 if self.ragged else slots, slots)
        if not self._at_hand:
            return Bounds(0, slots)
        low, high = self.count.aminmax()
        return Bounds(int(low), int(high))

    def ends(self, bounds: Bounds) -> list[int] | None:
        """Behind its next token, for each row, where they stand apart and that is known without waiting."""
        return (self.count + 1).tolist() if self.reserved and self._at_hand and not bounds.level else None

    @property
    def _at_hand(self) -> bool:
        """Whether the count can be read without waiting and without a break in what is compiled."""
        return not torch.compiler.is_compiling() and self.count.device.type == "cpu" and len(self.count) > 0

    def reserve(self, length: int, memory: int | None = None) -> KeyValueState:
        room = max(length, self.keys.shape[1], 1)
        keys, values = with_room(self.keys, room), with_room(self.values, room)
        return dataclasses.replace(self, keys=keys, values=values, ragged=True, reserved=True)

    def insert(self, rows: Tensor, other: State) -> KeyValueState:
        assert isinstance(other, KeyValueState)
        state, slots = self, other.keys.shape[1]
        if not self.reserved:
            state = self.reserve(slots)
        elif slots > self.keys.shape[1]:
            raise ValueError(f"a row with {slots} slots cannot be inserted into {self.keys.shape[1]}: reserve more")
        put_rows(state.keys, rows, other.keys)
        put_rows(state.values, rows, other.values)
        count = self.count.index_copy(0, rows, other.count)
        return dataclasses.replace(state, count=count, ragged=True, reserved=self.reserved)

    def free(self, rows: Tensor) -> KeyValueState:
        if self.reserved:
            self.keys.index_fill_(0, rows, 0)
            self.values.index_fill_(0, rows, 0)
            return dataclasses.replace(self, count=self.count.index_fill(0, rows, 0))
        return dataclasses.replace(super().free(rows), ragged=True)

    def reorder(self, index: Tensor, moved: Tensor) -> KeyValueState:
        """Only rows that are copied are touched, and of these only slots in use where that is known."""
        rows = len(index)
        if not self.reserved or rows > len(self.keys):
            return self.select(index)
        if len(moved):
            source, used = index[moved], self.bounds.high
            for slots in (self.keys[:, :used], self.values[:, :used]):
                slots.index_copy_(0, moved, slots.index_select(0, source))
        return dataclasses.replace(self, keys=self.keys[:rows], values=self.values[:rows], count=self.count[index])

    def rewind(self, count: Tensor) -> KeyValueState:
        return dataclasses.replace(self, count=count, ragged=True)

    def append(self, keys: Tensor, values: Tensor, lengths: Tensor | None, bounds: Bounds) -> KeyValueState:
        """The state after a chunk whose first `lengths` tokens in each row are real; `bounds` are those of this one."""
        keys, values = keys.to(self.keys.dtype), values.to(self.values.dtype)
        count = advance(self.count, keys.shape[1], lengths)
        if self.reserved:
            if self._at_hand:
                self._check_room(bounds.high + keys.shape[1] if lengths is None else int(count.max()))
            self._write(keys, values, lengths, bounds)
            return dataclasses.replace(self, count=count)
        ragged = self.ragged or lengths is not None
        if bounds.high == 0:
            return KeyValueState(keys, values, count, ragged)
        if bounds.level:
            return KeyValueState(torch.cat([self.keys, keys], 1), torch.cat([self.values, values], 1), count, ragged)
        room = bounds.high + keys.shape[1]
        grown = KeyValueState(with_room(self.keys, room), with_room(self.values, room), self.count, ragged)
        grown._write(keys, values, lengths, bounds)
        return dataclasses.replace(grown, count=count)

    def _write(self, keys: Tensor, values: Tensor, lengths: Tensor | None, bounds: Bounds) -> None:
        """A chunk into its slots, in place."""
        for slots, new in ((self.keys, keys), (self.values, values)):
            if bounds.level and lengths is None:
                slots[:, bounds.high : bounds.high + new.shape[1]] = new
            elif new.shape[1] == 1:
                _write_one(slots, new[:, 0], self.count, lengths)
            else:
                _write_chunk(slots, new, self.count, lengths)

    def _check_room(self, wanted: int) -> None:
        room = self.keys.shape[1]
        if wanted > room:
            raise ValueError(f"a state with room for {room} tokens cannot hold {wanted}: reserve more")


@dataclass(frozen=True)
class Place:
    """Where queries stand among keys.

    start    (1 or B,) position of the first query; None where queries and keys begin together.
    flush    whether the last key is that of the last query in every row.
    lengths  real keys of each row, for what looks at the future; None where all are, or where none that is not is seen.
    """

    start: Tensor | None = None
    flush: bool = False
    lengths: Tensor | None = None


def distances(start: Tensor, length: int, slots: int) -> Tensor:
    """How many positions slot s lies behind query t of a chunk that begins at `start` (B,); (B, T, S)."""
    t, s = torch.arange(length, device=start.device), torch.arange(slots, device=start.device)
    return (start[:, None] + t)[..., None] - s


def repeated(shared: Tensor, n_heads: int) -> Tensor:
    """Keys or values (B, T, H, K) of every head, of those (B, T, G, K) that groups share."""
    repeats = n_heads // shared.shape[2]
    return shared if repeats == 1 else shared.repeat_interleave(repeats, 2)


def with_room(old: Tensor, room: int) -> Tensor:
    """A copy of (B, S, ...) with `room` slots, at least S.

    New ones are zeros, not empty: a slot that is not looked at still meets a weight of 0, and 0 times NaN is NaN.
    """
    new = old.new_zeros(old.shape[0], room, *old.shape[2:])
    new[:, : old.shape[1]] = old
    return new


def put_rows(slots: Tensor, rows: Tensor, new: Tensor) -> None:
    """new (n, S', ...) into the rows `rows` (n,) of slots (B, S, ...) in place, zeros after it."""
    slots[:, : new.shape[1]].index_copy_(0, rows, new.to(slots.dtype))
    slots[:, new.shape[1] :].index_fill_(0, rows, 0)


def _write_one(slots: Tensor, new: Tensor, start: Tensor, lengths: Tensor | None) -> None:
    """new (B, ...) into slot start (B,) of each row, where it is real and has one."""
    row, room = torch.arange(slots.shape[0], device=slots.device), slots.shape[1]
    kept = start < room if lengths is None else (start < room) & (lengths.to(start.device) > 0)
    place = start.clamp(max=room - 1)
    slots[row, place] = torch.where(kept[:, None, None], new, slots[row, place])


def _write_chunk(slots: Tensor, new: Tensor, start: Tensor, lengths: Tensor | None) -> None:
    """new (B, T, ...) into the slots from start (B,) on, where it is real and has one: each slot asks for its token."""
    token = torch.arange(slots.shape[1], device=slots.device) - start[:, None]  # (B, S)
    end = new.shape[1] if lengths is None else lengths.to(start.device)[:, None]
    kept = (token >= 0) & (token < end)
    row = torch.arange(slots.shape[0], device=slots.device)[:, None]
    slots.copy_(torch.where(kept[..., None, None], new[row, token.clamp(0, new.shape[1] - 1)], slots))
