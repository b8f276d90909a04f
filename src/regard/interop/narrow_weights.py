"""Weights of an imported model in 8 bits, made one matrix at a time while they are written.

    stack.layers.0.mlp.input_to_hidden.weight  (N, K) float32      becomes
    stack.layers.0.mlp.input_to_hidden.q       (N, K) int8
    stack.layers.0.mlp.input_to_hidden.scale   (N,) float32

Which matrices these are is what layers/int8.py says of the model. Matrices wait in 8 bits until their turn in the file:
an import needs the memory of the model as it is written and of one tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from regard.interop.hf_folder import ForeignModel
from regard.kernels.int8 import quantised
from regard.layers.int8 import with_room_for_int8
from regard.storage.tensors import Form, Tensors, forms_of, weights_metadata, weights_of
from regard.training.estimate import on_meta

Q, SCALE, WEIGHT = ".q", ".scale", ".weight"


class Kept(Protocol):
    """What is written of a model: tensors by name, their forms, and what their file says."""

    @property
    def weights(self) -> Tensors: ...
    @property
    def shapes(self) -> Mapping[str, Form]: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


class NarrowWeights:
    """Those of a model in 8 bits."""

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
