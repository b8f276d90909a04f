"""A model whose linear maps are in blocks of few bits, as in the GGUF file that they come from (kernels/blocks.py).

Its numbers are those of the file, none rounded again. A table that an embedding shares with the head is in blocks for
both. Such a model is for use, not for training: its weights have no gradients.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import UsageError, nearest
from regard.kernels import decode_cpu
from regard.kernels.blocks import KINDS, blocks_linear_readable, dequantised, row_bytes, unpacked
from regard.kernels.decode_cpu import Compiled, Step
from regard.layers.few_bits import FewBits
from regard.layers.head import LinearHead
from regard.layers.linear import Activation, Linear, after


class _BlockWeights(Compiled, FewBits):
    """blocks: (N, bytes). kind: of the blocks, a name of KINDS."""

    blocks: Tensor
    kind: str
    bias: Tensor | None
    kept = ("blocks",)

    def to_step(self) -> Step | None:
        known = KINDS[self.kind]
        return decode_cpu.linear_blocks(
            self.blocks, known.number, self.blocks.shape[1] // known.bytes * known.size, self.bias
        )

    @property
    def weight(self) -> Tensor:
        """W (N, K), made anew."""
        return unpacked(self.blocks, self.kind)

    def takes_whole(self, x: Tensor, residual: Tensor | None) -> bool:
        """No kernel does the whole line."""
        return False

    def times(self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None) -> Tensor:
        """g(x W^T + b) + r."""
        y = None if self.compiled is None else self.compiled(x)
        if y is None:
            y = blocks_linear_readable(x, self.blocks, self.kind, self.bias)
        return after(y, activation, residual)


class BlockLinear(_BlockWeights, Linear):  # pyright: ignore[reportIncompatibleVariableOverride]  # no parameter
    """`Linear` in blocks."""

    wide = Linear

    def forward(self, x: Tensor, activation: Activation | None = None, residual: Tensor | None = None) -> Tensor:
        return self.times(x, activation, residual)


class BlockHead(_BlockWeights, LinearHead):  # pyright: ignore[reportIncompatibleVariableOverride]  # no parameter
    """`LinearHead` in blocks."""

    wide = LinearHead

    def logits(self, x: Tensor) -> Tensor:
        return self.times(x)


class BlockEmbedding(_BlockWeights, nn.Embedding):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A table in blocks that a head has too."""

    wide = nn.Embedding

    def to_step(self) -> None:
        """Nothing is multiplied."""

    def forward(self, input: Tensor) -> Tensor:
        rows = F.embedding(input.flatten(), self.blocks)
        return dequantised(rows, self.kind).unflatten(0, input.shape)


MAPS: dict[type[nn.Module], type[_BlockWeights]] = {Linear: BlockLinear, LinearHead: BlockHead}


def maps_of(model: nn.Module) -> dict[str, Tensor]:
    """The matrices that can be kept in blocks, by the names of their parts; a shared one under its first name."""
    wanted = {id(part.weight) for part in model.modules() if type(part) in MAPS}
    found: dict[int, str] = {}
    for name, part in model.named_modules():
        weight = part._parameters.get("weight")
        if weight is not None and id(weight) in wanted and id(weight) not in found:
            found[id(weight)] = name
    return {name: model.get_submodule(name)._parameters["weight"] for name in found.values()}  # pyright: ignore[reportReturnType]


def with_room_for_blocks(model: nn.Module, kinds: Mapping[str, str]) -> nn.Module:
    """The model itself with room for blocks in the place of its own numbers. kinds: of each map, by its name."""
    maps = maps_of(model)
    for name, kind in kinds.items():
        if name not in maps:
            raise UsageError(f"weights: there is no linear map {name[:80]!r}{nearest(name, maps)}")
        if kind not in KINDS:
            raise UsageError(f"weights.{name}: blocks of {kind[:40]!r} are not known{nearest(kind, KINDS)}")
        weight = maps[name]
        if weight.shape[1] % KINDS[kind].size:
            raise UsageError(f"weights.{name}: rows of {weight.shape[1]} numbers have no blocks of {kind}")
        size = len(weight), row_bytes(kind, weight.shape[1])
        blocks = torch.empty(*size, dtype=torch.uint8, device=weight.device)
        for part in list(model.modules()):
            if part._parameters.get("weight") is weight:
                _become(part, blocks, kind)
    return model


def _become(part: nn.Module, blocks: Tensor, kind: str) -> None:
    made = BlockEmbedding if type(part) is nn.Embedding else MAPS[type(part)]
    del part.weight
    part.register_buffer("blocks", blocks)
    vars(part)["kind"] = kind
    part.__class__ = made  # pyright: ignore[reportAttributeAccessIssue]  # any class of a module
