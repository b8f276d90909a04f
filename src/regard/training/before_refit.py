"""What a run was before it learnt its held-out part too (regard/run/refit.py), kept beside its weights.

The file holds the tensors that were solved for anew, as they were: with them in the place of its own the model is the
one that the held-out part chose, which alone may be judged by that part.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.storage import tensors
from regard.training import run_folder

if TYPE_CHECKING:
    from torch import Tensor, nn

BEFORE_REFIT = "before_refit.safetensors"


def kept_before(path: Path) -> dict[str, Tensor]:
    """What a run keeps, by name; nothing of one that does not."""
    is_refit = run_folder.has(path, BEFORE_REFIT)
    return tensors.read(run_folder.verified(path, BEFORE_REFIT)) if is_refit else {}


def put_back(model: nn.Module, before: dict[str, Tensor]) -> None:
    """Make a model what it was."""
    own = tensors.weights_of(model)
    tensors.copy_into({name: own[name] for name in before}, before)


def holds(model: nn.Module, before: dict[str, Tensor]) -> bool:
    """Whether a model is what it was."""
    own = tensors.weights_of(model)
    return all(bool((own[name].cpu() == tensor).all()) for name, tensor in before.items())
