"""The model file: sorted arrays in safetensors, mapped and not read, so that loading takes milliseconds.

Processes that open the same file share one copy of it in memory. A quantised model is stored tighter still: instead of
keys, the word of each n-gram and where the n-grams of each context begin; its keys are laid out when it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.errors import LONGEST_TOLD, CheckpointError
from regard.ngram.table import NgramTable
from regard.storage import tensors
from regard.storage.arrays import slices

T = TypeVar("T")
PREFIX = "table."  # of the names in the file


def stored(table: NgramTable, quantised: bool) -> dict[str, Tensor]:
    """What goes into the file, by name."""
    found = {f"{PREFIX}{name}": tensor for name, tensor in tensors.weights_of(table).items()}
    if quantised:
        for order in range(2, table.order + 1):
            name = f"table.levels.{order - 1}"
            found |= _tight(found.pop(f"{name}.keys"), name, len(table.level(order - 1)), table.vocab_size)
    return found


def open_file(table: NgramTable, path: Path, prefix: str = "") -> None:
    """Let the table use the arrays of a file. prefix: of their names, where the file holds more than a table."""
    found = _within(tensors.mapped(path), prefix)
    try:
        tight = [key.removesuffix(".first") for key in found if key.endswith(".first")]
        parts = [(found.pop(f"{name}.word"), found.pop(f"{name}.first")) for name in tight]
        with ThreadPoolExecutor(2) as pool:
            keys = pool.map(lambda part: _keys(part[0], part[1], table.vocab_size), parts)
            found |= {f"{name}.keys": made for name, made in zip(tight, keys, strict=True)}
        # Read beside the mapping that the table keeps, so that what was looked at can leave memory.
        read = _within(tensors.arrays(path), prefix)
        _require_sound(found, {name: read.get(name, tensor.numpy()) for name, tensor in found.items()}, table)
        table.load_state_dict({name.removeprefix(PREFIX): tensor for name, tensor in found.items()})
    except (KeyError, RuntimeError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(
            f"{path}: not the file of an n-gram model of order {table.order}: {repr(error)[:LONGEST_TOLD]}"
        ) from None


def _within(found: Mapping[str, T], prefix: str) -> dict[str, T]:
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}


def _tight(keys: Tensor, name: str, n_contexts: int, vocab_size: int) -> dict[str, Tensor]:
    first = torch.searchsorted(keys, torch.arange(n_contexts + 1, device=keys.device) * vocab_size)
    word = keys % vocab_size
    narrow = word.to(torch.int16) if vocab_size <= 1 << 16 else word.to(torch.int32)
    return {f"{name}.word": narrow, f"{name}.first": first.to(torch.int32) if len(keys) < 1 << 31 else first}


def _keys(word: Tensor, first: Tensor, vocab_size: int) -> Tensor:
    words = word.numpy().view(np.uint16) if word.dtype is torch.int16 else word.numpy()
    ends = first.numpy()
    _require(len(ends) > 0 and ends[0] == 0 and ends[-1] == len(words) and bool((np.diff(ends) >= 0).all()), "first")
    _require(not len(words) or 0 <= words.min() <= words.max() < vocab_size, "word")
    keys = np.repeat(np.arange(len(first) - 1) * vocab_size, np.diff(first.numpy()))
    keys += words
    return torch.from_numpy(keys)


def _require_sound(found: Mapping[str, Tensor], read: Mapping[str, np.ndarray], table: NgramTable) -> None:
    """Refuse arrays that lead out of others: keys that do not rise, contexts and codes that there are none of.

    read  the same arrays, to be gone through slice by slice.
    """
    order, before = table.order, table.vocab_size
    _require(_is(found["table.discounts"], torch.float64, (order, 3)), "discounts")
    root = found["table.root"]
    _require(_is(root, torch.float64, (2,)) and bool(root.isfinite().all()), "root")
    _require(float(root[0]) >= 0 and float(root[1]) >= 1, "root")
    for level in range(order):
        name = f"table.levels.{level}"
        keys, n = found[f"{name}.keys"], len(found[f"{name}.alpha.codes"])
        _require(_is(keys, torch.int64, (0 if level == 0 else n,)), f"{name}.keys")
        _require(level > 0 or n == table.vocab_size, f"{name}.alpha.codes")
        if len(keys):
            rises = _rises(read[f"{name}.keys"])
            _require(rises and int(keys[0]) >= 0 and int(keys[-1]) < before * table.vocab_size, f"{name}.keys")
        _require_values(found, read, f"{name}.alpha", n)
        _require_values(found, read, f"{name}.gamma", len(found[f"{name}.gamma.codes"]) and n)
        before = n


def _rises(keys: np.ndarray) -> bool:
    last = None
    for (part,) in slices(keys):
        if not (part[1:] > part[:-1]).all() or (last is not None and part[0] <= last):
            return False
        last = int(part[-1])
    return True


def _require_values(found: Mapping[str, Tensor], read: Mapping[str, np.ndarray], name: str, size: int) -> None:
    codes, table = found[f"{name}.codes"], found[f"{name}.table"]
    counts, totals = found[f"{name}.counts"], found[f"{name}.totals"]
    _require(codes.dtype in (torch.uint8, torch.int16, torch.int32) and codes.shape == (size,), f"{name}.codes")
    _require(
        table.dtype is torch.float64 and table.dim() == 1 and bool(((table >= 0) & table.isfinite()).all()),
        f"{name}.table",
    )
    plain = read[f"{name}.codes"]
    plain = plain.view(np.uint16) if plain.dtype == np.int16 else plain
    for (part,) in slices(plain):
        _require(int(part.min()) >= 0 and int(part.max()) < len(table), f"{name}.codes")
    _require(counts.dtype is torch.int64 and counts.shape in ((0,), (len(table),)), f"{name}.counts")
    _require(totals.dtype is torch.float64 and totals.shape in ((0,), (len(table),)), f"{name}.totals")


def _is(tensor: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> bool:
    return tensor.dtype is dtype and tuple(tensor.shape) == shape


def _require(condition: bool, name: str) -> None:
    if not condition:
        raise ValueError(f"{name} is out of range")
