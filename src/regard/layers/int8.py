"""A model with weights in 8 bits: every linear map and its head, by kernels/int8.py.

Taken are linear maps of regard and of torch itself (`Linear`, `LinearHead`, `nn.Linear`), wherever they stand, so also
inside a mixer from outside; what has a class of its own keeps its numbers, and so do norms, convolutions, recurrences
of torch's (`nn.LSTM`) and embeddings. A table that an embedding shares with the head is in 8 bits for both.

On a CPU few rows are multiplied by compiled code where there is a compiler (kernels/decode_cpu.py). Else, where whole
numbers of 8 bits are multiplied exactly, a matrix is held twice from its first product on, as it is and in the order of
reading, 2 bytes a weight. A quantised model is for use, not for training: its weights have no gradients.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import UsageError
from regard.kernels import decode_cpu
from regard.kernels.choice import takes_kernel
from regard.kernels.decode_cpu import Compiled, Step
from regard.kernels.int8 import PackedInt8, dequantised, int8_linear_packed, int8_linear_readable, multiplies_int8
from regard.kernels.int8 import quantised as quantised_matrix
from regard.layers.few_bits import FewBits
from regard.layers.head import LinearHead
from regard.layers.linear import FEW_ROWS, Activation, Linear, after, kernel_product

Weights = Literal["int8"]


class _Int8Weights(Compiled, FewBits):
    """W = s q in the place of a parameter.

    q      (N, K) in int8.
    scale  (N,) s.
    """

    q: Tensor
    scale: Tensor
    bias: Tensor | None
    kept = ("q", "scale")

    def in_order(self) -> PackedInt8 | None:
        """q in the order of reading, made when it is first wanted; None where that order is of no use."""
        if self._packed is None and self.q.device.type == "cpu" and self.q.numel() and multiplies_int8():
            self._packed = PackedInt8.of(self.q, self.scale)
        return self._packed

    def to_step(self) -> Step | None:
        return decode_cpu.linear_int8(self.q, self.scale, self.bias)

    @property
    def weight(self) -> Tensor:
        """W as it is multiplied with, made anew."""
        return dequantised(self.q, self.scale)

    def takes_whole(self, x: Tensor, residual: Tensor | None) -> bool:
        """Whether a kernel does the whole line."""
        return x.numel() <= FEW_ROWS * x.shape[-1] and takes_kernel(x, self.bias, residual)

    def times(self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None) -> Tensor:
        """g(x W^T + b) + r."""
        quick = None if self.compiled is None else self.compiled(x)
        if quick is not None:
            return after(quick, activation, residual)
        if self.takes_whole(x, residual):
            found = kernel_product(x, self.q, self.bias, activation, residual, self.scale)
            if found is not None:
                return found
        exact = torch.is_grad_enabled() or x.dtype == torch.float64 or not x.numel()
        packed = None if exact else self.in_order()
        if packed is None:
            y = int8_linear_readable(x, self.q, self.scale, self.bias)
        else:
            y = int8_linear_packed(x, packed, self.bias)
        return after(y, activation, residual)


class Int8Linear(_Int8Weights, Linear):  # pyright: ignore[reportIncompatibleVariableOverride]  # no parameter
    """`Linear` in 8 bits."""

    wide = Linear

    def forward(self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None) -> Tensor:
        return self.times(x, activation, residual)


class Int8TorchLinear(_Int8Weights, nn.Linear):  # pyright: ignore[reportIncompatibleVariableOverride]  # no parameter
    """`nn.Linear` in 8 bits."""

    wide = nn.Linear

    def forward(self, input: Tensor) -> Tensor:
        return self.times(input)


class Int8Head(_Int8Weights, LinearHead):  # pyright: ignore[reportIncompatibleVariableOverride]  # no parameter
    """`LinearHead` in 8 bits."""

    wide = LinearHead

    def logits(self, x: Tensor) -> Tensor:
        return self.times(x)


class Int8Embedding(_Int8Weights, nn.Embedding):  # pyright: ignore[reportIncompatibleVariableOverride]  # no parameter
    """A table of 8 bits that a head has too."""

    wide = nn.Embedding

    def to_step(self) -> None:
        """Nothing is multiplied."""

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.q).float() * F.embedding(input, self.scale[:, None])


MAPS: dict[type[nn.Module], type[_Int8Weights]] = {Linear: Int8Linear, nn.Linear: Int8TorchLinear, LinearHead: Int8Head}


@dataclass(frozen=True)
class Quantised:
    """A model in 8 bits, and what became of its numbers."""

    model: nn.Module
    numbers: int
    of: int

    @property
    def told(self) -> str:
        """One line for people."""
        return f"weights int8: {self.numbers:,} of {self.of:,} numbers ({self.numbers / self.of:.0%}) in 8 bits"


def in_int8(model: nn.Module) -> Quantised:
    """The same model with weights in 8 bits. The one that is given stays as it is; what is not in 8 bits is shared."""
    tensors = [*model.parameters(), *model.buffers()]
    return _narrowed(copy.deepcopy(model, {id(tensor): tensor for tensor in tensors}), quantised_matrix)


def with_room_for_int8(model: nn.Module) -> Quantised:
    """The model itself with room for weights in 8 bits in the place of its own, whose numbers are gone."""
    return _narrowed(model, _room)


def _room(weight: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weight, dtype=torch.int8, requires_grad=False), weight.new_empty(len(weight))


def _narrowed(model: nn.Module, made: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Quantised:
    """made: q and s of a matrix."""
    total = sum(parameter.numel() for parameter in model.parameters())
    maps = [part for part in model.modules() if type(part) in MAPS]
    matrices = {id(part.weight): part.weight for part in maps if isinstance(part.weight, nn.Parameter)}
    if not matrices:
        raise UsageError("int8: this model has no linear maps whose weights could have 8 bits; leave out weights")
    wide = sorted({str(matrix.dtype) for matrix in matrices.values() if matrix.dtype != torch.float32})
    if wide:
        raise UsageError(f"int8 is made of weights in float32, found {', '.join(wide)}")
    found: dict[int, tuple[Tensor, Tensor]] = {}
    for part in model.modules():
        weight = part._parameters.get("weight")
        kind = Int8Embedding if type(part) is nn.Embedding else MAPS.get(type(part))
        if weight is not None and kind is not None and id(weight) in matrices:
            if id(weight) not in found:
                found[id(weight)] = made(weight)
            _become(part, kind, *found[id(weight)])
    return Quantised(model, sum(matrix.numel() for matrix in matrices.values()), total)


def _become(part: nn.Module, kind: type[_Int8Weights], q: Tensor, scale: Tensor) -> None:
    """Another class with q and s in the place of the weight."""
    del part.weight
    part.register_buffer("q", q)
    part.register_buffer("scale", scale)
    part.__class__ = kind
