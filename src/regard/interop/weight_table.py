"""Tables of weights: the names that other programs give to tensors, ours beside them, and how one is made of the other.

    Line("head.weight", "lm_head.weight")                      the same tensor
    Line("...input_to_heads.weight", Q, K, V, form=heads)      three of theirs make one of ours

A line is read both ways, so that one table serves import and export. {} is the number of the layer.

Rotary positions turn pairs of coordinates. Ours are neighbours, 2j and 2j + 1; theirs are j and j + K / 2: rows of the
maps to queries and keys change places, by which no product of a query and a key changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import UsageError


class Form:
    """How tensors of theirs are one of ours: here, that they are the same one."""

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        """Ours, of theirs in the order of the line."""
        (tensor,) = parts
        return tensor

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        """Theirs, in the order of the line."""
        return [tensor]


class Transposed(Form):
    """A matrix kept as (in, out)."""

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].T

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        return [tensor.T]


class OneChannel(Form):
    """A depthwise convolution kept as (channels, 1, window)."""

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][:, 0]

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        return [tensor[:, None]]


@dataclass(frozen=True)
class OneMore(Form):
    """A norm whose weight is kept as its distance from one. scale: what the result is multiplied with."""

    scale: float = 1.0

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        return (parts[0] + 1) * self.scale

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        return [tensor / self.scale - 1]


@dataclass(frozen=True)
class Turned(Form):
    """Rows of heads of `width` coordinates, of which the first `turned` are in pairs (j, j + turned / 2)."""

    width: int
    turned: int
    after: Form = Form()  # noqa: RUF009  # has no state

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        return self._moved(self.after.ours(parts), (2, self.turned // 2))

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        return self.after.theirs(self._moved(tensor, (self.turned // 2, 2)))

    def _moved(self, rows: Tensor, pairs: tuple[int, int]) -> Tensor:
        if not self.turned:
            return rows
        _require_rows(rows, self.width)
        heads = rows.unflatten(0, (-1, self.width))
        moved = heads[:, : self.turned].unflatten(1, pairs).transpose(1, 2).flatten(1, 2)
        return torch.cat([moved, heads[:, self.turned :]], 1).flatten(0, 1)


@dataclass(frozen=True)
class Heads(Form):
    """Maps to queries, keys and values one below the other."""

    n_heads: int
    n_groups: int
    width: int
    turned: int = 0

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        queries, keys, values = parts
        for tensor, heads in zip(parts, self._heads, strict=True):
            _require_rows(tensor, heads * self.width, whole=True)
        turn = Turned(self.width, self.turned)
        return torch.cat([turn.ours([queries]), turn.ours([keys]), values])

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        queries, keys, values = tensor.split([heads * self.width for heads in self._heads])
        turn = Turned(self.width, self.turned)
        return [*turn.theirs(queries), *turn.theirs(keys), values]

    @property
    def _heads(self) -> tuple[int, int, int]:
        return self.n_heads, self.n_groups, self.n_groups


@dataclass(frozen=True)
class HeadByHead(Form):
    """The same kept head by head: the query, key and value of the first, then those of the second."""

    heads: Heads

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        _require_rows(parts[0], 3 * self.heads.n_heads * self.heads.width, whole=True)
        apart = parts[0].unflatten(0, (self.heads.n_heads, 3, self.heads.width)).unbind(1)
        return self.heads.ours([part.flatten(0, 1) for part in apart])

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        apart = [part.unflatten(0, (-1, self.heads.width)) for part in self.heads.theirs(tensor)]
        return [torch.stack(apart, 1).flatten(0, 2)]


@dataclass(frozen=True)
class Places(Form):
    """Rows of positions from `first` on; all text is of the first of `segments`, whose row stands beside each.

    Back come zeros for the rows before and for the segments, by which the same vectors are given.
    """

    first: int = 0
    segments: int = 0

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        rows = parts[0][self.first :]
        return rows + parts[1][0] if self.segments else rows

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        rows = torch.cat([tensor.new_zeros(self.first, tensor.shape[1]), tensor])
        return [rows, tensor.new_zeros(self.segments, tensor.shape[1])] if self.segments else [rows]


@dataclass(frozen=True)
class Interleaved(Form):
    """A tensor whose side towards the stream, its last axis or its first, is kept in halves: what positions add as
    sines there, then what they add as cosines. Ours take turns."""

    last: bool
    after: Form = Form()  # noqa: RUF009  # has no state

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        return self._moved(self.after.ours(parts), 2)

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        return self.after.theirs(self._moved(tensor, tensor.shape[self._axis] // 2))

    @property
    def _axis(self) -> int:
        return -1 if self.last else 0

    def _moved(self, tensor: Tensor, rows: int) -> Tensor:
        width = tensor.shape[self._axis]
        order = torch.arange(width).reshape(rows, width // rows).T.flatten()
        return tensor.index_select(self._axis, order.to(tensor.device))


class OneRow(Form):
    """A vector kept as a matrix of one row."""

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        _require_rows(parts[0], 1, whole=True)
        return parts[0][0]

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        return [tensor[None]]


@dataclass(frozen=True)
class Scaled(Form):
    """The same tensor times a number."""

    scale: float

    def ours(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0] * self.scale

    def theirs(self, tensor: Tensor) -> list[Tensor]:
        return [tensor / self.scale]


SAME = Form()


class Line:
    """One tensor of ours, and those of theirs that it is made of."""

    def __init__(self, ours: str, *theirs: str, form: Form = SAME) -> None:
        self.ours, self.theirs, self.form = ours, theirs, form

    def of_layer(self, number: int) -> Line:
        return Line(self.ours.format(number), *(name.format(number) for name in self.theirs), form=self.form)


def lines_of(table: Sequence[Line], n_layers: int) -> Iterator[Line]:
    """A table with those lines that stand for every layer written out."""
    for line in table:
        yield from (line.of_layer(number) for number in range(n_layers)) if "{}" in line.ours else [line]


def both(ours: str, *theirs: str, form: Form = SAME, bias: bool = True) -> list[Line]:
    """The lines of a map's or a norm's weight and, where it has one, of its bias."""
    kinds = ("weight", "bias") if bias else ("weight",)
    return [Line(f"{ours}.{kind}", *(f"{name}.{kind}" for name in theirs), form=form) for kind in kinds]


def _require_rows(tensor: Tensor, size: int, *, whole: bool = False) -> None:
    rows = tensor.shape[0] if tensor.dim() else 0
    if rows != size if whole else rows % size:
        raise UsageError(f"has {rows} rows, expected {'' if whole else 'a multiple of '}{size}")
