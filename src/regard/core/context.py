"""Context: the side inputs of a call, in one typed frozen record. No `**kwargs`, so a misspelt name is an error."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.core.tree import walkable


@dataclass(frozen=True, eq=False)
class Owned:
    """Leave to write a state of fixed size in place during a step, given by who owns it.

    alive   (B,) boolean: rows that go on; the others keep their state.
    counts  positions that the owner advances by one in these rows when the step is done; see `state.stepped`.
    """

    alive: Tensor
    counts: list[Tensor] = field(default_factory=list[Tensor])


@walkable
@dataclass(frozen=True)
class Context:
    """What a mixer may know beside its input and its state.

    lengths         (B,) real tokens in each row of this chunk; what follows is padding. None: every token is real.
    offsets         (n + 1,) where n sequences packed end to end in one row begin and end. Excludes `lengths`. Best on
                    the host: how long the sequences are is looked at.
    memory          (B, S, D) vectors to look at from outside, such as an encoder's.
    memory_lengths  (B,) real vectors in each row of the memory.
    owned           of a step whose state may be written in place; None: a state is a value.
    """

    lengths: Tensor | None = None
    offsets: Tensor | None = None
    memory: Tensor | None = None
    memory_lengths: Tensor | None = None
    owned: Owned | None = None

    def __post_init__(self) -> None:
        if self.offsets is not None and self.lengths is not None:
            raise ValueError("a context has either lengths (padded rows) or offsets (packed rows), not both")


EMPTY = Context()


def row_count(x: Tensor, context: Context) -> int:
    """The rows of x, or the sequences that lie end to end in it: the rows of a state."""
    return x.shape[0] if context.offsets is None else len(context.offsets) - 1


def real_tokens(lengths: Tensor | None, x: Tensor) -> Tensor:
    """Boolean (B, T), True where a token of x (B, T, ...) is real and False where it is padding."""
    if lengths is None:
        return torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    return torch.arange(x.shape[1], device=x.device) < lengths.to(x.device)[:, None]


def blank_padding(x: Tensor, lengths: Tensor | None) -> Tensor:
    """x (B, T, ...) with zeros for padding, which may hold anything: a weight of 0 times NaN is NaN."""
    if lengths is None:
        return x
    real = real_tokens(lengths, x)
    return x.masked_fill(~real.reshape(*real.shape, *[1] * (x.dim() - 2)), 0)


def unpack(packed: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Sequences packed end to end, (1, P, ...), as rows padded on the right, (n, T, ...), and their lengths (n,)."""
    lengths = offsets.diff()
    longest = int(lengths.max()) if len(lengths) else 0
    place = offsets[:-1, None] + torch.arange(longest, device=offsets.device)  # (n, T)
    # Places beyond a row's own are of the next one: they are padding, which may hold anything.
    place = place.clamp(max=max(0, packed.shape[1] - 1)).to(packed.device)
    return packed[0, place], lengths.to(packed.device)


def pack(padded: Tensor, lengths: Tensor) -> Tensor:
    """The inverse of `unpack`: (n, T, ...) to (1, P, ...)."""
    return padded[real_tokens(lengths, padded)][None]


def places_within(offsets: Tensor) -> Tensor:
    """The position of every token in its own sequence, (P,), of sequences packed end to end."""
    starts, lengths = offsets[:-1], offsets.diff()
    return torch.arange(int(lengths.sum()), device=offsets.device) - starts.repeat_interleave(lengths)


def last_real(x: Tensor, lengths: Tensor | None, size: int) -> Tensor:
    """The `size` vectors before the end of each row, (B, size, ...), of x (B, size + T, ...) whose first `size`
    vectors come from before the chunk and whose next `lengths` are real."""
    if lengths is None:
        return x[:, x.shape[1] - size :]
    index = lengths.to(x.device)[:, None] + torch.arange(size, device=x.device)  # (B, size)
    index = index.reshape(*index.shape, *[1] * (x.dim() - 2)).expand(-1, -1, *x.shape[2:])
    return x.gather(1, index)
