"""The model of a run folder: what config.json describes, refused before anything of its size is made.

The tree is decoded and built on torch's meta device, which has shapes and no numbers; only when those are the shapes in
the file of weights is the model itself made. So a file can ask for no more memory than it has bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.limits import require_possible
from regard.errors import CheckpointError, UsageError, blamed_on

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config
    from regard.core.data_spec import DataSpec


@dataclass(frozen=True, eq=False)
class SavedModel:
    """What a folder says of its model.

    shapes   the model without its numbers.
    weights  what linear maps are kept in: None for float32, "int8", or kinds of blocks by the names of the maps.
    """

    path: Path
    config: Config
    shapes: nn.Module
    weights: str | dict[str, str] | None = None

    @property
    def vocab_size(self) -> int | None:
        """None of a model that reads no tokens."""
        return getattr(self.shapes, "vocab_size", None)

    def require_for(self, spec: DataSpec) -> None:
        """Refuse a model that was built for other data than `spec` says; it may know more tokens than are read."""
        sizes = {"n_classes": spec.n_classes, "n_known": spec.n_known, "horizon": spec.horizon}
        sizes |= {"n_channels": spec.n_channels, "source_vocab_size": spec.source_vocab_size or spec.vocab_size}
        with blamed_on(self.path):
            for where, found in _counts(self.config.to_dict(), "model.config"):
                *above, key = where.split(".")
                vocabulary = spec.source_vocab_size if "encoder" in above else None
                wanted = (vocabulary or spec.vocab_size) if key == "vocab_size" else sizes.get(key, found)
                if key == "size" and above[-1] == "embedding" and spec.picture:
                    wanted = spec.picture[1]
                if wanted and (found < wanted if key == "vocab_size" else found != wanted):
                    raise UsageError(f"{where}: is {found}, and what the run reads and writes has {wanted}")
            if spec.vocab_size and self.vocab_size not in (None, spec.vocab_size):
                raise UsageError(f"the model writes {self.vocab_size} tokens, and the run knows {spec.vocab_size}")

    def with_weights(self, weights: Path) -> nn.Module:
        """The model with the numbers of its verified file, changes of low rank merged into what they change."""
        from regard.core.fitted import OwnFile
        from regard.layers.low_rank import merged
        from regard.mixers.lora import without_lora
        from regard.storage import tensors
        from regard.training.estimate import WithoutChance

        if not isinstance(self.shapes, OwnFile):
            tensors.require_fits(self.shapes, weights)
        plain = without_lora(self.config)
        # What the file holds need not be drawn first.
        with blamed_on(f"{self.path}: model.config"), WithoutChance():
            model: nn.Module = _with_room(plain.build(), self.weights)
        if isinstance(model, OwnFile):
            model.open_file(weights)
        elif plain == self.config:
            tensors.assign_weights(model, weights)
        else:
            tensors.copy_into(tensors.weights_of(model), merged(tensors.read(weights)))
        return model


def saved_model(path: Path, config: dict[str, Any]) -> SavedModel:
    """The model that the config.json of a folder describes; one that cannot be is refused."""
    from regard.core.config import from_dict
    from regard.core.registry import load_model
    from regard.training.estimate import on_meta
    from regard.training.run_folder import CONFIG

    described = config.get("model", {})
    load_model(described.get("name", ""))
    file, tree = path / CONFIG, described.get("config")
    if tree is None:
        raise CheckpointError(f"{file}: has no model; the folder is not one of regard")
    with blamed_on(file):
        require_possible(tree, "model.config")
        found, weights = from_dict(tree, "model.config"), described.get("weights")
    with blamed_on(f"{file}: model.config"):
        return SavedModel(file, found, _with_room(on_meta(found), weights), weights)


def _with_room(model: nn.Module, weights: str | dict[str, str] | None) -> nn.Module:
    """The model with room for weights in few bits, where its folder has such."""
    if weights is None:
        return model
    if isinstance(weights, dict):
        from regard.layers.blocks import with_room_for_blocks

        return with_room_for_blocks(model, weights)
    from regard.layers.int8 import with_room_for_int8

    return with_room_for_int8(model).model


def _counts(tree: Any, where: str) -> Iterator[tuple[str, int]]:
    """Every whole number of a config and its place."""
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in parts:
        if isinstance(part, int) and not isinstance(part, bool):
            yield f"{where}.{key}", part
        else:
            yield from _counts(part, f"{where}.{key}")
