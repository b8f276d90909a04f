"""Weights of an imported model in few bits, made one matrix at a time while they are written.

    int8     ....input_to_hidden.weight (N, K)  becomes  .q (N, K) int8 and .scale (N,)       layers/int8.py
    blocks   ....input_to_hidden.weight (N, K)  becomes  .blocks (N, bytes) as in the file    layers/blocks.py

Matrices in 8 bits wait until their turn in the file: an import needs the memory of the model as it is written and of
one tensor. Of a GGUF file rows of blocks are kept as they are. Where rows of one of our maps have blocks of several
kinds, those with one scale become Q8_0, which holds the same numbers; what is in no blocks stays float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.errors import UsageError, nearest
from regard.interop.hf_folder import ForeignModel
from regard.interop.weight_table import Form as TableForm
from regard.interop.weight_table import Heads
from regard.kernels.blocks import KINDS, dequantised
from regard.kernels.int8 import quantised
from regard.layers.blocks import maps_of, with_room_for_blocks
from regard.layers.int8 import with_room_for_int8
from regard.storage.tensors import Form, Tensors, forms_of, weights_metadata, weights_of
from regard.training.estimate import on_meta

Q, SCALE, WEIGHT, BLOCKS = ".q", ".scale", ".weight", ".blocks"
EIGHT = "Q8_0"
OF_ONE_SCALE = ("Q4_0", "Q5_0", EIGHT)


class Kept(Protocol):
    """What is written of a model: tensors by name, their forms, and what their file says."""

    @property
    def weights(self) -> Tensors: ...
    @property
    def shapes(self) -> Mapping[str, Form]: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


@runtime_checkable
class BlockSource(Protocol):
    """A file whose tensors can be had in the blocks that it keeps them in."""

    def kind(self, name: str, /) -> str: ...
    def blocks(self, name: str, /) -> Tensor: ...


def kept_weights(model: ForeignModel, weights: str | None) -> tuple[Kept, Any]:
    """What is written of a model whose linear maps are kept so, and what config.json says of them, if anything."""
    if weights is None:
        return model, None
    if weights == "int8":
        return Int8Weights(model), weights
    if weights != "blocks":
        raise UsageError(f"unknown weights {weights!r}{nearest(weights, ['int8', 'blocks'])}")
    if not isinstance(model.weights.files, BlockSource):
        raise UsageError(f"{model.path}: blocks are those of a GGUF file; --weights int8 makes 8 bits of other weights")
    found = BlockWeights(model, model.weights.files)
    return found, found.kinds


class Int8Weights:
    """Linear maps in 8 bits."""

    def __init__(self, model: ForeignModel) -> None:
        narrow = with_room_for_int8(on_meta(model.plan.config)).model
        self.shapes, self.metadata = forms_of(weights_of(narrow)), weights_metadata(narrow)
        self._wide = model.weights
        self._waiting: dict[str, Tensor] = {}

    @property
    def weights(self) -> Tensors:
        return self

    def __getitem__(self, name: str) -> Tensor:
        if name in self._waiting:
            return self._waiting.pop(name)
        for own, other in ((SCALE, Q), (Q, SCALE)):
            stem = name.removesuffix(own)
            if stem != name and stem + other in self.shapes:
                q, scale = quantised(self._wide[stem + WEIGHT])
                found = {stem + Q: q, stem + SCALE: scale}
                self._waiting[stem + other] = found[stem + other]
                return found[name]
        return self._wide[name]


class BlockWeights:
    """Linear maps in the blocks of their file. kinds: of each map, by its name."""

    def __init__(self, model: ForeignModel, source: BlockSource) -> None:
        self._wide, self._source = model.weights, source
        shapes = on_meta(model.plan.config)
        kinds = {name: self._kind(name, weight.shape[1]) for name, weight in maps_of(shapes).items()}
        self.kinds = {name: kind for name, kind in kinds.items() if kind is not None}
        if not self.kinds:
            raise UsageError(f"{model.path}: no linear map of it is in blocks that are known ({', '.join(KINDS)})")
        narrow = with_room_for_blocks(shapes, self.kinds)
        self.shapes, self.metadata = forms_of(weights_of(narrow)), weights_metadata(narrow)

    @property
    def weights(self) -> Tensors:
        return self

    def __getitem__(self, name: str) -> Tensor:
        stem = name.removesuffix(BLOCKS)
        if stem == name:
            return self._wide[name]
        parts, kind = [], self.kinds[stem]
        for theirs in self._theirs(stem):
            own, blocks = self._source.kind(theirs), self._source.blocks(theirs)
            parts.append(blocks if own == kind else in_eight_bits(blocks, own))
        return self._wide.lines[stem + WEIGHT].form.ours(parts).contiguous()

    def _theirs(self, stem: str) -> list[str]:
        return [self._wide.found(name) for name in self._wide.lines[stem + WEIGHT].theirs]

    def _kind(self, stem: str, width: int) -> str | None:
        """The kind of blocks that a map can be kept in; None where it cannot."""
        form = self._wide.lines[stem + WEIGHT].form
        if not (type(form) is TableForm or isinstance(form, Heads)):
            return None  # rows of theirs are no rows of ours
        kinds = {self._source.kind(name) for name in self._theirs(stem)}
        if len(kinds) > 1 and kinds <= set(OF_ONE_SCALE):
            kinds = {EIGHT}
        (kind, *others) = kinds
        return kind if not others and kind in KINDS and width % KINDS[kind].size == 0 else None


def in_eight_bits(blocks: Tensor, kind: str) -> Tensor:
    """The same numbers (N, bytes) as Q8_0, of blocks that have one scale and fewer bits."""
    parts = blocks.reshape(-1, KINDS[kind].bytes)
    scale = parts[:, :2].contiguous().view(torch.float16).float()
    q = (dequantised(parts, kind) / scale).nan_to_num(0.0).round().to(torch.int8)
    return torch.cat([parts[:, :2], q.view(torch.uint8)], 1).reshape(len(blocks), -1)
