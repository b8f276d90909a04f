"""The tensors of a verified checkpoint, in one file for weights and one for the rest, or in parts.

Names are those of weights as the model has them, and `optimiser/`, `average/`, `carried/`, `loss_scale/` and
`generator/` before what else the next step reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from regard.storage import tensors
from regard.storage.tensors import Form
from regard.training import checkpoint, sharded_checkpoint

if TYPE_CHECKING:
    from regard.training.parallel.ranks import Ranks

T = TypeVar("T")


class SavedTensors:
    """What a checkpoint of two files holds. weights, training: forms by name. metadata: of the weights."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.weights, self.metadata = tensors.forms_in(path / checkpoint.MODEL)
        self.training = tensors.forms_in(path / checkpoint.OPTIMISER)[0]

    def below(self, prefix: str) -> dict[str, Form]:
        """The forms of what the next step reads under a name."""
        return below(self.training, prefix)

    def whole(self, prefix: str) -> dict[str, Tensor]:
        """The numbers of the same."""
        return below(self._values, prefix)

    def whole_weights(self) -> dict[str, Tensor]:
        return tensors.read(self.path / checkpoint.MODEL)

    def copy_weights(self, ranks: Ranks, own: Mapping[str, Tensor]) -> None:
        """Overwrite the weights that this process holds."""
        ranks.copy_into(own, self.whole_weights())

    def copy(self, ranks: Ranks, own: Mapping[str, Tensor], prefix: str) -> None:
        """The same of what else the next step reads."""
        ranks.copy_into(own, self.whole(prefix))

    @cached_property
    def _values(self) -> dict[str, Tensor]:
        return tensors.read(self.path / checkpoint.OPTIMISER)


class ShardedTensors(SavedTensors):
    """The same of one in parts, of which nobody reads more than he holds."""

    def __init__(self, path: Path, metadata: Mapping[str, str]) -> None:
        self.path, self.metadata = path, dict(metadata)
        found = sharded_checkpoint.forms(path)
        self.weights = {name: form for name, form in found.items() if "/" not in name}
        self.training = {name: form for name, form in found.items() if "/" in name}

    def whole(self, prefix: str) -> dict[str, Tensor]:
        return below(self._read({n: form for n, form in self.training.items() if n.startswith(prefix)}), prefix)

    def whole_weights(self) -> dict[str, Tensor]:
        return self._read(self.weights)

    def copy_weights(self, ranks: Ranks, own: Mapping[str, Tensor]) -> None:
        sharded_checkpoint.read_into(self.path, own)

    def copy(self, ranks: Ranks, own: Mapping[str, Tensor], prefix: str) -> None:
        sharded_checkpoint.read_into(self.path, {f"{prefix}{name}": tensor for name, tensor in own.items()})

    def _read(self, forms: Mapping[str, Form]) -> dict[str, Tensor]:
        types = {name: dtype for dtype, name in tensors.DTYPES.items()}
        room = {name: torch.empty(form.shape, dtype=types[form.dtype]) for name, form in forms.items()}
        sharded_checkpoint.read_into(self.path, room)
        return room


def saved_tensors(path: Path, state: Mapping[str, Any]) -> SavedTensors:
    """The tensors of the checkpoint at `path`. state: what its state.json says."""
    if not checkpoint.is_sharded(path):
        return SavedTensors(path)
    told = state.get(sharded_checkpoint.TIES)
    return ShardedTensors(path, told if isinstance(told, dict) else {})


def below(named: Mapping[str, T], prefix: str) -> dict[str, T]:
    """What has names under a prefix, by the rest of them."""
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}
