"""State: what a sequence model must carry from one chunk of tokens to the next.

A state is a value. It goes into a call and a new one comes out; no module keeps one. Every tensor in it is batch
first, so that rows can be picked (`select`) for beams, and it carries its own position, so that nothing has to be
guessed from the shape of a cache.

Who decodes may own a state: `reserve` gives one of fixed size, whose rows are slots that texts come into (`insert`) and
leave (`free`) while the others go on, or become copies of one another (`reorder`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from regard.core.context import Owned, last_real
from regard.core.tree import walkable


@dataclass(frozen=True)
class State:
    """Base of all states. Fields are tensors (batch first), states, or tuples of states; anything else is a constant.

    `position` (B,) counts the tokens that each row has seen.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        walkable(cls)

    @property
    def position(self) -> Tensor:
        """Tokens seen so far by each row, (B,)."""
        raise NotImplementedError(f"{type(self).__name__} has no position")

    @property
    def batch_size(self) -> int:
        return self.position.shape[0]

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """The same state with `function` applied to every tensor."""
        return dataclasses.replace(self, **{f.name: _map(getattr(self, f.name), function) for f in _fields(self)})

    def select(self, index: Tensor) -> Self:
        """Rows `index` of the batch, copied: rows may be repeated, dropped or reordered.

        A state may share between its rows what no call ever writes to.
        """
        return dataclasses.replace(self, **{f.name: _select(getattr(self, f.name), index) for f in _fields(self)})

    def reorder(self, index: Tensor, moved: Tensor) -> Self:
        """`select` for the owner of a reserved state, who gives the old one up: buffers may be written in place.

        moved  (n,) the rows of the new state that another row is copied to. All others stay, index[i] = i, and none of
               `moved` is itself copied: the new state can be made by copying those rows alone.
        """
        del moved
        return self.select(index)

    def detach(self) -> Self:
        """Cut from the graph: the boundary of truncated backpropagation."""
        return self.map(Tensor.detach)

    def reserve(self, length: int, memory: int | None = None) -> Self:
        """A copy of fixed size that the caller owns, with room for `length` tokens in all.

        From here on neither a shape nor a constant of it changes with the tokens read, so that a step can be compiled
        or captured once. Large buffers are written in place: the call that takes a reserved state uses it up. Copy
        with `select` to branch. States of constant size return themselves.

        What goes beyond the room is refused on the CPU. Elsewhere to know it would be to wait for the device: the token
        is counted and not kept, so that whoever owns the state has to count.

        memory  room for so many vectors of a memory in each row, which `insert` brings; None keeps what was met.
        """
        reserved = {f.name: _reserve(getattr(self, f.name), length, memory) for f in _fields(self)}
        return dataclasses.replace(self, **reserved)

    def insert(self, rows: Tensor, other: Self) -> Self:
        """The state whose rows `rows` (n,), each named once, are those of `other`: n rows of the same mixer, wherever
        they stand, that have met their memory where there is one. Written in place where it is reserved.
        """
        if len(rows) != other.batch_size:
            raise ValueError(f"{len(rows)} rows cannot take the {other.batch_size} of another state: name one for each")
        inserted = {f.name: _insert(getattr(self, f.name), rows, getattr(other, f.name)) for f in _fields(self)}
        return dataclasses.replace(self, **inserted)

    def free(self, rows: Tensor) -> Self:
        """The state whose rows `rows` (n,) are as before any token: zeros, unless a state begins with something else
        and says so. Nothing is left of what they held. Written in place where it is reserved.
        """
        return dataclasses.replace(self, **{f.name: _free(getattr(self, f.name), rows) for f in _fields(self)})

    def rewind(self, count: Tensor) -> Self | None:
        """This state as it was after the first `count` (B,) tokens of each row, of which it has seen at least so many.

        None where what was read cannot be unread, as in a recurrence: there keep the state of that place, a value.
        """
        del count
        return None

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor, in field order."""
        for field in _fields(self):
            yield from _tensors(getattr(self, field.name))

    def parts_within(self) -> Iterator[State]:
        """This state and those inside it."""
        yield self
        for field in _fields(self):
            value = getattr(self, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, State):
                    yield from part.parts_within()

    @property
    def nbytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors())


@dataclass(frozen=True)
class Position(State):
    """Nothing but the count of tokens seen: the state of a mixer that remembers nothing else."""

    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count

    def rewind(self, count: Tensor) -> Position:
        return Position(count)


@dataclass(frozen=True)
class RecentTokens(State):
    """tokens (B, N): the last N tokens of each row, oldest first, -1 where there was none yet."""

    tokens: Tensor
    count: Tensor

    @classmethod
    def none(cls, batch_size: int, size: int, device: torch.device | None = None) -> RecentTokens:
        """No token seen yet; the last `size` will be remembered."""
        nothing = torch.full((batch_size, size), -1, dtype=torch.long, device=device)
        return cls(nothing, zero_position(batch_size, device))

    @property
    def position(self) -> Tensor:
        return self.count

    def free(self, rows: Tensor) -> RecentTokens:
        return RecentTokens(self.tokens.index_fill(0, rows, -1), self.count.index_fill(0, rows, 0))

    def after(self, history: Tensor, lengths: Tensor | None) -> RecentTokens:
        """The state after a chunk: `history` (B, N + T) is these tokens and the chunk, of which `lengths` are real."""
        size = self.tokens.shape[1]
        count = advance(self.count, history.shape[1] - size, lengths)
        return RecentTokens(last_real(history, lengths, size), count)


@dataclass(frozen=True)
class Chain(State):
    """The states of parts used one after the other, in order. A stack's state: no part knows its own index."""

    parts: tuple[State, ...]

    @property
    def position(self) -> Tensor:
        return self.parts[0].position

    def reorder(self, index: Tensor, moved: Tensor) -> Chain:
        return Chain(tuple(part.reorder(index, moved) for part in self.parts))

    def rewind(self, count: Tensor) -> Chain | None:
        parts = [rewound for part in self.parts if (rewound := part.rewind(count)) is not None]
        return Chain(tuple(parts)) if len(parts) == len(self.parts) else None

    def __getitem__(self, index: int) -> State:
        return self.parts[index]

    def __len__(self) -> int:
        return len(self.parts)


def zero_position(batch_size: int, device: torch.device | None = None) -> Tensor:
    """No token seen yet, (B,)."""
    return torch.zeros(batch_size, dtype=torch.long, device=device)


def advance(position: Tensor, length: int, lengths: Tensor | None) -> Tensor:
    """The position after a chunk of `length` tokens of which `lengths` (B,) are real."""
    return position + (length if lengths is None else lengths.to(position.device))


def stepped(position: Tensor, owned: Owned | None) -> Tensor:
    """The position after one token: one more, or, where the state is written in place, left to its owner to count."""
    if owned is None:
        return position + 1
    owned.counts.append(position)
    return position


def where_row(condition: Tensor, new: State, old: State) -> State:
    """`new` in the rows where `condition` (B,) holds, `old` in the others. Both of one shape."""
    replacements = iter(list(new.tensors()))

    def pick(tensor: Tensor) -> Tensor:
        replacement = next(replacements)
        if replacement is tensor:
            return tensor
        mask = condition.reshape(-1, *[1] * (tensor.dim() - 1))
        return torch.where(mask, replacement, tensor)

    return old.map(pick)


def _fields(state: State) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(state)


def _map(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, State):
        return value.map(function)
    if isinstance(value, tuple):
        return tuple(_map(part, function) for part in value)
    return value


def _select(value: Any, index: Tensor) -> Any:
    if isinstance(value, Tensor):
        return value.index_select(0, index)
    if isinstance(value, State):
        return value.select(index)
    if isinstance(value, tuple):
        return tuple(_select(part, index) for part in value)
    return value


def _reserve(value: Any, length: int, memory: int | None) -> Any:
    if isinstance(value, State):
        return value.reserve(length, memory)
    if isinstance(value, tuple):
        return tuple(_reserve(part, length, memory) for part in value)
    return value


def _insert(value: Any, rows: Tensor, other: Any) -> Any:
    if isinstance(value, Tensor):
        return value.index_copy(0, rows, other.to(value.dtype))
    if isinstance(value, State):
        return value.insert(rows, other)
    if isinstance(value, tuple):
        return tuple(_insert(part, rows, its) for part, its in zip(value, other, strict=True))
    return value


def _free(value: Any, rows: Tensor) -> Any:
    if isinstance(value, Tensor):
        return value.index_fill(0, rows, 0)
    if isinstance(value, State):
        return value.free(rows)
    if isinstance(value, tuple):
        return tuple(_free(part, rows) for part in value)
    return value


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, State):
        yield from value.tensors()
    elif isinstance(value, tuple):
        for part in value:
            yield from _tensors(part)
