"""Tensors to and from safetensors files: names, shapes and number types are compared before anything is touched.

The format (safetensors 0.x): 8 bytes, the length of the header; the header, JSON from names to number type, shape and
place; the numbers. It is written here because the bytes are hashed on their way to the disk; it is read by the
library, whose reader is fuzzed against hostile headers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from regard.errors import LONGEST_TOLD, CheckpointError
from regard.storage.arrays import slices
from regard.storage.format import FORMAT_VERSION, NAMES, format_of, name_now

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}
ITEM_BYTES = {name: dtype.itemsize for dtype, name in DTYPES.items()}
SHOWN = 5
ALIGNMENT, LARGE = 64, 1 << 20  # of torch's own memory; bytes from which on a tensor is left in its file


@dataclass(frozen=True)
class Form:
    """Shape and number type of a tensor."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def is_float(self) -> bool:
        return self.dtype in ("F64", "F32", "F16", "BF16")

    @property
    def item_bytes(self) -> int:
        return ITEM_BYTES[self.dtype]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.item_bytes

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


class Tensors(Protocol):
    """What has tensors by name."""

    def __getitem__(self, name: str, /) -> Tensor: ...


def form_of(tensor: Tensor) -> Form:
    return Form(tuple(tensor.shape), DTYPES[tensor.dtype])


def forms_of(tensors: Mapping[str, Tensor]) -> dict[str, Form]:
    return {name: form_of(tensor) for name, tensor in tensors.items()}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name, a shared one once, under its first name."""
    return {name: tensor.detach() for name, tensor in _own(model).items()}


def _own(model: nn.Module) -> dict[str, Tensor]:
    """The same themselves, and not what they hold."""
    seen: set[int] = set()
    found = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor
    return found


def ties_of(model: nn.Module) -> dict[str, str]:
    """Second names of shared tensors, each with the name it is stored under."""
    first: dict[int, str] = {}
    tied = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) in first:
            tied[name] = first[id(tensor)]
        first.setdefault(id(tensor), name)
    return tied


def size_of(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def chunks(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The bytes of a safetensors file, a part of a tensor at a time."""
    return streamed(forms_of(tensors), tensors, metadata)


def streamed(forms: Mapping[str, Form], tensors: Tensors, metadata: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The same of tensors that are made when their turn comes, of which only the forms are known before.

    Wide number types come first: all are aligned.
    """
    order = order_of(forms)
    header: dict[str, Any] = {"__metadata__": {NAMES: str(FORMAT_VERSION), **(metadata or {})}}
    start = 0
    for name in order:
        form = forms[name]
        stop = start + form.nbytes
        header[name] = {"dtype": form.dtype, "shape": list(form.shape), "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(header).encode()
    # Numbers begin where torch would put them, so that a file can be used as it lies (`assign_weights`).
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        if flat.numel():
            yield from (part for (part,) in slices(flat.view(torch.uint8).numpy()))


def order_of(forms: Mapping[str, Form]) -> list[str]:
    """In which order tensors lie in a file."""
    return sorted(forms, key=lambda name: (-forms[name].item_bytes, name))


def forms_in(path: Path) -> tuple[dict[str, Form], dict[str, str]]:
    """Names, shapes and number types of a file and its metadata, without its numbers."""
    try:
        with safe_open(path, framework="pt") as file:
            forms, metadata = {}, dict(file.metadata() or {})
            version = format_of(metadata, path)
            for name in file.keys():  # noqa: SIM118  # the library's handle is no mapping
                part = file.get_slice(name)
                forms[name_now(name, version)] = Form(tuple(part.get_shape()), part.get_dtype())
            return forms, metadata
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file: {error}") from None


def read(path: Path) -> dict[str, Tensor]:
    """Every tensor of a file, in memory of torch's own alignment: products may round otherwise at another one."""
    try:
        with safe_open(path, framework="pt") as file:
            version = format_of(file.metadata() or {}, path)
            return {name_now(name, version): file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file: {error}") from None


def mapped(path: Path) -> dict[str, Tensor]:
    """Every tensor of a file as a window on it: nothing is read before it is used."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file: {error}") from None


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Every tensor of a file that `mapped` took, as an array whose pages can be let go of (see `ngram.spill`)."""
    whole = np.memmap(path, np.uint8, "r")
    begin = 8 + int.from_bytes(whole[:8].tobytes(), "little")
    header = json.loads(whole[8:begin].tobytes())
    header.pop("__metadata__", None)
    kinds = {name: torch.zeros(0, dtype=kind).numpy().dtype for kind, name in DTYPES.items() if name != "BF16"}
    return {
        name: whole[begin + facts["data_offsets"][0] : begin + facts["data_offsets"][1]].view(kinds[facts["dtype"]])
        for name, facts in header.items()
    }


def require_same(expected: Mapping[str, Form], found: Mapping[str, Form], where: Path) -> None:
    """Refuse tensors of another architecture, showing the first differences."""
    differences = [
        f"{name} is {found.get(name, 'missing')} there and {expected.get(name, 'missing')} here"
        for name in [*expected, *(name for name in found if name not in expected)]
        if expected.get(name) != found.get(name)
    ]
    if differences:
        more = f" and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
        raise CheckpointError(f"{where}: of another architecture: {'; '.join(differences[:SHOWN])}{more}")


def require_fits(model: nn.Module, path: Path) -> None:
    """Refuse a file of weights that `model` cannot take, without touching the model."""
    require_forms_fit(model, *forms_in(path), path)


def require_forms_fit(model: nn.Module, forms: Mapping[str, Form], metadata: Mapping[str, str], path: Path) -> None:
    """The same of what is said of a file: the forms of its tensors, and its metadata."""
    require_same(forms_of(weights_of(model)), forms, path)
    try:
        told, version = json.loads(metadata.get("tied", "{}")), format_of(metadata, path)
        stored = {name_now(second, version): name_now(first, version) for second, first in told.items()}
    except (ValueError, RecursionError, AttributeError, TypeError):
        stored = None
    if stored != ties_of(model):
        told = repr(stored)[:LONGEST_TOLD]
        raise CheckpointError(f"{path}: of another architecture: ties {told} there and {ties_of(model)} here")


def load_weights(model: nn.Module, path: Path) -> None:
    """Copy the weights of a file into `model`, after all of them were found to fit."""
    require_fits(model, path)
    copy_into(weights_of(model), read(path))


def assign_weights(model: nn.Module, path: Path) -> None:
    """The weights of a file in the place of those of `model`, after all of them were found to fit.

    Large tensors stay windows on the file: nothing is read before it is used, and what is written to one is the
    process's own. Those that do not lie as torch's own memory does are copied, as products may round otherwise there.
    """
    require_fits(model, path)
    try:
        with safe_open(path, framework="pt") as file:
            version = format_of(file.metadata() or {}, path)
            names = {name_now(name, version): name for name in file.keys()}  # noqa: SIM118
            for name, own in _own(model).items():
                value = file.get_tensor(names[name])
                as_it_lies = value.nbytes >= LARGE and value.data_ptr() % ALIGNMENT == 0
                own.data = value if as_it_lies else value.clone()
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file: {error}") from None


def copy_into(tensors: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Overwrite tensors in place, by name."""
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(values[name])


def copied(tensors: Mapping[str, Tensor], room: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies on the host, in memory of `room` where it has some of that form, else in new memory that is put there.

    New pages cost more than the copying, and to those that the host does not move a GPU copies several times as fast.
    """
    for name, tensor in tensors.items():
        before = room.get(name)
        if before is None or form_of(before) != form_of(tensor):
            room[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
        room[name].copy_(tensor.detach(), non_blocking=True)
    for device in {tensor.device for tensor in tensors.values() if tensor.is_cuda}:
        torch.cuda.current_stream(device).synchronize()
    return {name: room[name] for name in tensors}


def weights_metadata(model: nn.Module) -> dict[str, str]:
    """What a file of weights says beside its numbers."""
    return {"format": "pt", "tied": json.dumps(ties_of(model), sort_keys=True)}
