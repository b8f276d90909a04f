"""The model file: sorted arrays in safetensors, mapped and not read, so that loading takes milliseconds.

Processes that open the same file share one copy of it in memory. A quantised model is stored tighter still: instead of
keys, the word of each n-gram and where the n-grams of each context begin; its keys are laid out when it is opened.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.errors import CheckpointError
from regard.models.ngram import NgramModel
from regard.training import tensors


def stored(model: NgramModel) -> dict[str, Tensor]:
    """What goes into the file, by name."""
    found = tensors.weights_of(model)
    if model.config.quantise:
        for order in range(2, model.config.order + 1):
            name = f"table.levels.{order - 1}"
            found |= _tight(found.pop(f"{name}.keys"), name, len(model.table.level(order - 1)), model.vocab_size)
    return found


def open_file(model: NgramModel, path: Path) -> None:
    """Let the model use the arrays of a file."""
    found = tensors.mapped(path)
    try:
        tight = [key.removesuffix(".first") for key in found if key.endswith(".first")]
        parts = [(found.pop(f"{name}.word"), found.pop(f"{name}.first")) for name in tight]
        with ThreadPoolExecutor(2) as pool:
            keys = pool.map(lambda part: _keys(part[0], part[1], model.vocab_size), parts)
            found |= {f"{name}.keys": made for name, made in zip(tight, keys, strict=True)}
        model.load_state_dict(found)
    except (KeyError, RuntimeError, IndexError) as error:
        raise CheckpointError(
            f"{path}: not the file of an n-gram model of order {model.config.order}: {error!r}"
        ) from None


def _tight(keys: Tensor, name: str, n_contexts: int, vocab_size: int) -> dict[str, Tensor]:
    first = torch.searchsorted(keys, torch.arange(n_contexts + 1, device=keys.device) * vocab_size)
    word = keys % vocab_size
    narrow = word.to(torch.int16) if vocab_size <= 1 << 16 else word.to(torch.int32)
    return {f"{name}.word": narrow, f"{name}.first": first.to(torch.int32) if len(keys) < 1 << 31 else first}


def _keys(word: Tensor, first: Tensor, vocab_size: int) -> Tensor:
    words = word.numpy().view(np.uint16) if word.dtype is torch.int16 else word.numpy()
    keys = np.repeat(np.arange(len(first) - 1) * vocab_size, np.diff(first.numpy()))
    keys += words
    return torch.from_numpy(keys)
