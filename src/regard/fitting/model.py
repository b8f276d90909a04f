"""FittedModel: base of fitted models whose numbers have no shape before the fit, such as a weight for each n-gram met.

A subclass registers its numbers as empty buffers, writes `fit` and `forward`, and says in `settle` what must be true of
numbers that come from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.core.config import Config
from regard.core.fitted import FitSettings, Nobody
from regard.core.tap import Traced
from regard.errors import LONGEST_TOLD, CheckpointError, DataError
from regard.storage import tensors

MOST_WEIGHTS = 1 << 28  # 2 GiB in float64, of which a solver needs a few


@dataclass(frozen=True)
class FittedConfig(Config):
    """Base of configs of fitted models. A subclass says in `example` what the laws fit its model to."""

    fitted: ClassVar[bool] = True

    def example(self) -> Any:
        """A few examples, as the task of the model gives them."""
        raise NotImplementedError(f"{type(self).__name__} must write example")

    def build_example(self) -> Any:
        with torch.device("cpu"):  # where fits are made, wherever the answers are given
            model = self.build()
            model.fit(self.example(), FitSettings(), Nobody())
        return model.to(torch.get_default_device())


@runtime_checkable
class FilePart(Protocol):
    """A part of a fitted model whose numbers lie in the same file."""

    def open_part(self, path: Path, prefix: str) -> None:
        """Take the numbers whose names begin with `prefix`; those of no such part are refused."""
        ...


class FittedModel(Traced):
    """What it gives are its answers already, and its head passes them on.

    causal, has_state  no: an answer may depend on all of an example, and nothing is carried to the next.
    reads              "tokens", the ids of the run's tokenizer; "text", the characters themselves, by their numbers.
    weighs_classes     whether a fit asks `FitSettings.class_weights`.
    like               of the number type and on the device of the answers; the numbers keep their own types.
    """

    like: Tensor
    causal = False
    has_state = False
    chunk_sizes: ClassVar[tuple[int, ...]] = ()
    max_length: int | None = None
    reads: str = "tokens"
    weighs_classes: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Identity()
        self.register_buffer("like", torch.zeros(0), persistent=False)

    def take(self, numbers: Mapping[str, Tensor]) -> None:
        """Put tensors, of whatever length, in the place of the buffers of these names."""
        for name, value in numbers.items():
            old = self.get_buffer(name)
            if value.dtype is not old.dtype or value.dim() != old.dim():
                raise ValueError(f"{name} is {tensors.form_of(value)}")
            if value.is_floating_point() and not bool(value.isfinite().all()):
                raise ValueError(f"{name} is not finite")
            setattr(self, name, value.to(self.like.device))
        self.settle()

    def settle(self) -> None:
        """Raise ValueError where the numbers are not those of such a model; work out what follows from them."""

    def stored(self) -> dict[str, Tensor]:
        return tensors.weights_of(self)

    def open_file(self, path: Path) -> None:
        parts = {f"{name}.": part for name, part in self.named_children() if isinstance(part, FilePart)}
        found = {name: one for name, one in tensors.read(path).items() if not name.startswith(tuple(parts))}
        try:
            if found.keys() != set(self._numbers()):
                raise ValueError(f"it holds {', '.join(sorted(found))}, and not {', '.join(sorted(self._numbers()))}")
            self.take(found)
        except (ValueError, IndexError, RuntimeError, OverflowError) as error:
            told = str(error)[:LONGEST_TOLD]
            raise CheckpointError(f"{path}: not the file of such a {type(self).__name__}: {told}") from None
        for prefix, part in parts.items():
            part.open_part(path, prefix)

    def _numbers(self) -> list[str]:
        """Names of the buffers that are kept, without those of parts."""
        return [name for name, _ in self.named_buffers(recurse=False) if name not in self._non_persistent_buffers_set]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        """Take arrays of any length, also as a part of another module."""
        self.take({name: state_dict[prefix + name] for name in self._numbers() if prefix + name in state_dict})
        for name, part in self.named_children():
            if isinstance(part, FilePart) and isinstance(part, nn.Module):
                inner = f"{prefix}{name}."
                its = {key.removeprefix(inner): value for key, value in state_dict.items() if key.startswith(inner)}
                part.load_state_dict(its)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Another number type is for what is given out; the numbers themselves only move."""
        like = fn(self.like)
        super()._apply(lambda tensor: tensor.to(like.device), recurse)
        self.like = like
        return self


def require(condition: bool, what: str) -> None:
    """Refuse numbers of a file."""
    if not condition:
        raise ValueError(f"{what} is out of range")


def require_room(rows: int, what: str, columns: int, each: str, advice: str) -> None:
    """Refuse data that asks for more weights than can be solved for."""
    if rows * columns > MOST_WEIGHTS:
        raise DataError(
            f"{rows:,} {what} times {columns:,} {each} are {rows * columns:.1e} weights, more than the "
            f"{MOST_WEIGHTS:.1e} that fit: {advice}"
        )
