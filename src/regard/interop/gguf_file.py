"""GGUF files, the form of llama.cpp: what one says of itself, and its tensors, made float32 when they are asked for.

    magic, version, counts
    keys and values          general.architecture, llama.block_count, tokenizer.ggml.tokens, ...
    tensors                  name, shape, number type, place
    numbers                  from the next multiple of general.alignment on

The header is read here, within bounds. Blocks of the usual kinds are undone by kernels/blocks.py, others by the `gguf`
package.
"""

from __future__ import annotations

import importlib
import math
import mmap
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import LONGEST_TOLD, CheckpointError, UsageError
from regard.kernels.blocks import KINDS, unpacked
from regard.storage.regular import open_regular
from regard.storage.tensors import Form

MAGIC, VERSIONS = b"GGUF", (2, 3)
STRING, ARRAY, BOOL = 8, 9, 7
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
MOST_KEYS, MOST_TENSORS, MOST_DIMENSIONS = 1 << 16, 1 << 16, 4
ALIGNMENT = 32


@dataclass(frozen=True)
class Place:
    """Of a tensor: its number type, and its bytes within the file."""

    shape: tuple[int, ...]
    kind: Any
    start: int
    stop: int


class GgufFile:
    """An open file. facts: its keys and values. forms: of its tensors, as they are given."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self._data, self._at = path, data, 0
        self.facts: dict[str, Any] = {}
        self._places: dict[str, Place] = {}
        self._read()
        self.forms = {name: Form(place.shape, "F32") for name, place in self._places.items()}

    def __getitem__(self, name: str) -> Tensor:
        place = self._places[name]
        if place.kind.name in KINDS and len(place.shape) == 2:
            return unpacked(self.blocks(name), place.kind.name)
        quants = importlib.import_module("gguf.quants")
        try:
            found = quants.dequantize(self._raw(place), place.kind)
            return torch.from_numpy(np.asarray(found, np.float32).reshape(place.shape))
        except (NotImplementedError, ValueError, AssertionError) as error:
            reason = " ".join(str(error).split())[:LONGEST_TOLD]
            raise CheckpointError(f"{self.told(name)}: {place.kind.name} cannot be read: {reason}") from None

    def kind(self, name: str) -> str:
        """The number type of a tensor, by its name there."""
        return self._places[name].kind.name

    def blocks(self, name: str) -> Tensor:
        """The bytes of each row (N, bytes) of a matrix, as they are."""
        place = self._places[name]
        return torch.from_numpy(self._raw(place)).reshape(place.shape[0], -1)

    def _raw(self, place: Place) -> np.ndarray:
        """The bytes of a tensor, copied: while an array looked at the map, no failure could close it."""
        with memoryview(self._data) as whole, whole[place.start : place.stop] as part:
            return np.array(part, np.uint8)

    def told(self, name: str) -> str:
        return f"{self.path}: {name}"

    def _read(self) -> None:
        if self._bytes(4) != MAGIC:
            raise CheckpointError(f"{self.path}: is no GGUF file, it does not begin with {MAGIC.decode()}")
        version = self._scalar("I")
        if version not in VERSIONS:
            raise CheckpointError(f"{self.path}: has GGUF version {version}, this regard reads 2 and 3")
        tensors, keys = self._count(MOST_TENSORS, "tensors"), self._count(MOST_KEYS, "keys")
        for _ in range(keys):
            key = self._string()
            self.facts[key] = self._value(self._scalar("I"))
        found = [self._described() for _ in range(tensors)]
        alignment = self.facts.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise CheckpointError(f"{self.path}: general.alignment: {str(alignment)[:40]} is none")
        begin = -(-self._at // alignment) * alignment
        for name, shape, kind, offset in found:
            if name in self._places:
                raise CheckpointError(f"{self.path}: {name}: is there twice")
            self._places[name] = self._place(name, shape, kind, begin + offset)

    def _described(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        n_dimensions = self._scalar("I")
        if n_dimensions > MOST_DIMENSIONS:
            raise CheckpointError(f"{self.path}: {name[:80]}: has {n_dimensions} dimensions")
        shape = tuple(self._scalar("Q") for _ in range(n_dimensions))
        return name, shape[::-1], self._scalar("I"), self._scalar("Q")

    def _place(self, name: str, shape: tuple[int, ...], kind: int, start: int) -> Place:
        reader: Any = importlib.import_module("gguf")
        try:
            known = reader.GGMLQuantizationType(kind)
        except ValueError:
            raise CheckpointError(f"{self.path}: {name[:80]}: number type {kind} is not known") from None
        block, size = reader.GGML_QUANT_SIZES[known]
        row = shape[-1] if shape else 1
        if row % block:
            told = f"rows of {row} numbers have no whole blocks of {known.name}, which hold {block}"
            raise CheckpointError(f"{self.path}: {name[:80]}: {told}")
        stop = start + math.prod(shape) // block * size
        if stop > len(self._data):
            raise CheckpointError(f"{self.path}: {name[:80]}: {list(shape)} of {known.name} is not all in the file")
        return Place(shape, known, start, stop)

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind in SCALARS:
            return self._scalar(SCALARS[kind])
        if kind != ARRAY:
            raise CheckpointError(f"{self.path}: a value of type {kind} is not known")
        inner, length = self._scalar("I"), self._count(len(self._data), "values")
        if inner in SCALARS:
            size = struct.calcsize(SCALARS[inner])
            return np.frombuffer(self._bytes(length * size), np.dtype(SCALARS[inner]).newbyteorder("<")).tolist()
        if inner != STRING:
            raise CheckpointError(f"{self.path}: a list of values of type {inner} is not known")
        return [self._string() for _ in range(length)]

    def _count(self, most: int, what: str) -> int:
        found = self._scalar("Q")
        if found > most:
            raise CheckpointError(f"{self.path}: says that it has {found} {what}; it is damaged")
        return found

    def _string(self) -> str:
        return self._bytes(self._count(len(self._data), "characters")).decode("utf-8", "replace")

    def _scalar(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._bytes(struct.calcsize(f"<{form}")))[0]

    def _bytes(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise CheckpointError(f"{self.path}: ends within its header; it was cut short")
        self._at += size
        return self._data[self._at - size : self._at]


@contextmanager
def opened_gguf(path: Path) -> Iterator[GgufFile]:
    """A file, while it is mapped."""
    try:
        importlib.import_module("gguf")  # the reader of blocks, which is optional
    except ImportError:
        raise CheckpointError(f"{path}: GGUF files need pip install gguf") from None
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_regular(path))
            data = stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            found = GgufFile(path, data)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path}: cannot be read: {error}") from None
        yield found


class Renamed:
    """Tensors of a file under other names, each changed on its way."""

    def __init__(self, file: GgufFile, names: dict[str, str], change: Callable[[str, Tensor], Tensor]) -> None:
        self._file, self._names, self._change = file, names, change
        self.forms = {new: self._changed_form(new) for new in names}

    def __getitem__(self, name: str) -> Tensor:
        return self._change(name, self._file[self._names[name]])

    def kind(self, name: str) -> str:
        return self._file.kind(self._names[name])

    def blocks(self, name: str) -> Tensor:
        """Of a matrix, whose rows alone are moved on the way."""
        return self._change(name, self._file.blocks(self._names[name]))

    def told(self, name: str) -> str:
        return self._file.told(self._names[name])

    def _changed_form(self, name: str) -> Form:
        form = self._file.forms[self._names[name]]
        try:
            return Form(tuple(self._change(name, torch.empty(form.shape, device="meta")).shape), form.dtype)
        except (UsageError, RuntimeError) as error:
            raise CheckpointError(f"{self.told(name)}: {form}: {' '.join(str(error).split())[:120]}") from None
