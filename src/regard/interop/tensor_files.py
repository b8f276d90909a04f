"""The tensors of one or several safetensors files, one at a time, under the names of one of our models.

What can be wrong is found before the first number is written: names from the headers, shapes by doing on torch's meta
device, which has no numbers, what will be done with the tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.errors import CheckpointError, UsageError
from regard.interop.architecture import Plan
from regard.interop.weight_table import Line, lines_of
from regard.storage.manifest import read_json
from regard.storage.tensors import Form

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"[A-Za-z0-9._-]+\.safetensors")
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
FLOATS = ("F64", "F32", "F16", "BF16")
SHOWN = 3


class TensorFiles:
    """Open files. forms: shape and number type of each tensor by its name."""

    def __init__(self, handles: Mapping[Path, Any]) -> None:
        self._place: dict[str, tuple[Path, str]] = {}
        self._handles = handles
        self.forms: dict[str, Form] = {}
        for path, handle in handles.items():
            for written in handle.keys():  # noqa: SIM118  # the library's handle is no mapping
                name = _current(written)
                if name in self.forms:
                    raise CheckpointError(
                        f"{path}: {written}: is also in {self._place[name][0].name}; keep one of both"
                    )
                part = handle.get_slice(written)
                self.forms[name] = Form(tuple(part.get_shape()), part.get_dtype())
                self._place[name] = path, written

    def __getitem__(self, name: str) -> Tensor:
        path, written = self._place[name]
        return self._handles[path].get_tensor(written)

    def told(self, name: str) -> str:
        """Where a tensor is, for people."""
        path, written = self._place[name]
        return f"{path}: {written}"


@contextmanager
def opened(folder: Path) -> Iterator[TensorFiles]:
    """The weights of a folder: one file, or several that an index lists."""
    with ExitStack() as stack:
        handles = {}
        for path in _files(folder):
            try:
                handles[path] = stack.enter_context(safe_open(path, framework="pt"))
            except (SafetensorError, OSError) as error:
                raise CheckpointError(f"{path}: not a readable safetensors file: {error}") from None
        files = TensorFiles(handles)
        _check_index(folder, files)
        yield files


def _files(folder: Path) -> list[Path]:
    whole, index = folder / WEIGHTS, folder / INDEX
    if whole.exists() and index.exists():
        raise CheckpointError(f"{folder}: has {WEIGHTS} and {INDEX}, which may disagree; remove one of them")
    if whole.exists():
        return [whole]
    if not index.exists():
        _refuse_pickles(folder)
        raise CheckpointError(f"{folder}: has no {WEIGHTS} and no {INDEX}")
    names = sorted(set(_weight_map(index).values()))
    for name in names:
        if not SHARD.fullmatch(name) or not (folder / name).is_file():
            raise CheckpointError(f"{index}: weight_map: names the file {name[:80]!r}, which is not there")
    return [folder / name for name in names]


def _weight_map(index: Path) -> dict[str, str]:
    content = read_json(index)
    found = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()) or not found:
        raise CheckpointError(f"{index}: weight_map: expected an object of file names by tensors")
    return found


def _check_index(folder: Path, files: TensorFiles) -> None:
    index = folder / INDEX
    if not index.exists():
        return
    told = {_current(name): file for name, file in _weight_map(index).items()}
    for name in files.forms.keys() ^ told.keys():
        where = "no file has it" if name in told else f"{files.told(name)} is not listed"
        raise CheckpointError(f"{index}: weight_map: {name}: the index and the files disagree, {where}")


def _refuse_pickles(folder: Path) -> None:
    """Reading a pickle can run anything, so none is ever read."""
    found = sorted(path for ending in ("*.bin", "*.pt", "*.pth") for path in folder.glob(ending))
    if found:
        raise CheckpointError(
            f"{found[0]}: is a pickle, which can run code when it is read; convert it where you trust it: python -c "
            f"\"from transformers import AutoModel as M; M.from_pretrained('{folder}').save_pretrained('NEW')\""
        )


def _current(name: str) -> str:
    """A name as it is written today: old files say gamma and beta."""
    for old, new in OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


class TensorSource(Protocol):
    """Tensors of theirs by name. forms: shape and number type of each. told: where one is, for people."""

    @property
    def forms(self) -> Mapping[str, Form]: ...
    def __getitem__(self, name: str, /) -> Tensor: ...
    def told(self, name: str, /) -> str: ...


class Weights:
    """The tensors of a plan, by our names, made of theirs when they are asked for. dtype: their number type."""

    def __init__(
        self,
        files: TensorSource,
        plan: Plan,
        shapes: Mapping[str, Form],
        config: str,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.files, self.plan, self.dtype = files, plan, dtype
        self.lines = {line.ours: line for line in lines_of(plan.table, plan.n_layers)}
        self._check_names()
        self._check_shapes(shapes, config)
        self._check_copies()

    def __getitem__(self, name: str) -> Tensor:
        line = self.lines[name]
        parts = [self.files[self.found(theirs)].to(self.dtype) for theirs in line.theirs]
        return line.form.ours(parts).contiguous()

    def found(self, name: str) -> str:
        """Their name of a tensor as it is in the file: those of a bare model lack what the others begin with."""
        short = name.removeprefix(self.plan.prefix)
        return short if name not in self.files.forms and short in self.files.forms else name

    def _check_names(self) -> None:
        wanted = [self.found(name) for line in self.lines.values() for name in line.theirs]
        missing = [name for name in wanted if name not in self.files.forms]
        if missing:
            raise CheckpointError(f"{self._where}: {_listed(missing)}: missing, and config.json asks for it")
        known = {*wanted, *map(self.found, self.plan.copies)}
        extra = [name for name in self.files.forms if name not in known and not self._unused(name)]
        if extra:
            raise CheckpointError(f"{self._where}: {_listed(extra)}: not known, and what it does is not")

    @property
    def _where(self) -> str:
        return self.files.told(next(iter(self.files.forms))).partition(": ")[0] if self.files.forms else WEIGHTS

    def _unused(self, name: str) -> bool:
        full = {name, self.plan.prefix + name}
        return any(fnmatchcase(one, pattern) for one in full for pattern in self.plan.unused)

    def _check_shapes(self, shapes: Mapping[str, Form], config: str) -> None:
        for name, line in self.lines.items():
            found = self._shape(line)
            if found != shapes[name].shape:
                told = self.files.told(self.found(line.theirs[0]))
                raise CheckpointError(f"{told}: gives {list(found)}, and {config} asks for {list(shapes[name].shape)}")
        if self.lines.keys() != shapes.keys():
            raise AssertionError(f"a table does not name {sorted(self.lines.keys() ^ shapes.keys())}")

    def _shape(self, line: Line) -> tuple[int, ...]:
        """The shape that a tensor of ours will have."""
        names = [self.found(name) for name in line.theirs]
        for name in names:
            if self.files.forms[name].dtype not in FLOATS:
                raise CheckpointError(f"{self.files.told(name)}: has numbers of type {self.files.forms[name].dtype}")
        parts = [torch.empty(self.files.forms[name].shape, device="meta") for name in names]
        try:
            return tuple(line.form.ours(parts).shape)
        except (UsageError, RuntimeError, ValueError, IndexError) as error:
            told = " ".join(str(error).split())[:120]
            raise CheckpointError(f"{self.files.told(names[0])}: {self.files.forms[names[0]]}: {told}") from None

    def _check_copies(self) -> None:
        for copy, first in self.plan.copies.items():
            one, other = self.found(copy), self.found(first)
            if one in self.files.forms and not torch.equal(self.files[one], self.files[other]):
                raise CheckpointError(
                    f"{self.files.told(one)}: differs from {other}, and config.json says that both are one"
                )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
