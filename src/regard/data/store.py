"""A store: a folder of arrays and texts that is either whole or not there.

    store.json      facts, and the number type of each array
    manifest.json   size and SHA-256 of every file (see `storage.manifest`)

Everything is written to a temporary folder and moved to its place by one rename. On opening, every file is checked
against the manifest, and arrays are mapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import CheckpointError, DataError, ResourceError
from regard.storage import disk, manifest
from regard.storage.arrays import slices
from regard.storage.temporary import remove_abandoned, temporary_folder

CONTENT = "store.json"
TEMPORARY = ".preparing-"
DTYPES = ("<u2", "<u4", "<i8")


@dataclass(frozen=True)
class Store:
    """What a folder holds. `facts` are plain JSON values."""

    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]
    texts: dict[str, str]


def publish(folder: Path, store: Store) -> None:
    """Write a store to `folder`, which must not exist. If another process was first, its store stays."""
    texts = text_files(store)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder.parent, TEMPORARY) as temporary:
            written = {name: manifest.write_file(temporary / name, [text]) for name, text in texts.items()}
            for name, array in store.arrays.items():
                parts = (np.ascontiguousarray(part) for (part,) in slices(array))
                written[name] = manifest.write_file(temporary / name, parts)
            manifest.seal(temporary, written)
            disk.move_folder(temporary, folder)
    except OSError as error:
        if not folder.exists():
            raise ResourceError(
                f"cannot write {folder}: {error.strerror or error}; free space or choose another cache"
            ) from None


def text_files(store: Store) -> dict[str, bytes]:
    """The files of a store beside its arrays."""
    dtypes = {name: array.dtype.str for name, array in store.arrays.items()}
    facts = {CONTENT: manifest.canonical({"facts": store.facts, "dtypes": dtypes})}
    return facts | {name: text.encode() for name, text in store.texts.items()}


def open_store(folder: Path, *, is_fresh: bool = False) -> Store:
    """The store in `folder`, every file of it checked. is_fresh: by whoever has just hashed and written it."""
    remove_abandoned(folder.parent, TEMPORARY)
    with _advised(folder):
        files = manifest.verify(folder, [] if is_fresh else None, extras=False).files
        extra = sorted(set(disk.names(folder)) - {*files, manifest.NAME})
        if extra:
            raise CheckpointError(f"{folder / extra[0]} does not belong there")
        facts, dtypes = _content(folder / CONTENT)
        missing = sorted(dtypes.keys() - files.keys())
        if missing:
            raise CheckpointError(f"{folder / missing[0]}: is missing")
        arrays = {name: _array(folder / name, dtype) for name, dtype in dtypes.items()}
        texts = {name: _text(folder / name) for name in files if name not in {CONTENT, *dtypes}}
    return Store(facts, arrays, texts)


def advice(folder: Path) -> str:
    """What to do with a store that cannot be used."""
    return f"; delete the folder {folder} and it will be prepared again"


@contextmanager
def _advised(folder: Path) -> Iterator[None]:
    """What is wrong with a store, and that it can be made again."""
    try:
        yield
    except CheckpointError as error:
        raise DataError(f"{error}{advice(folder)}") from None


def _content(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Facts of a store, and the number type of each array."""
    content = manifest.read_json(path)
    facts, dtypes = (content.get(key) if isinstance(content, dict) else None for key in ("facts", "dtypes"))
    if not isinstance(facts, dict) or not isinstance(dtypes, dict) or not all(one in DTYPES for one in dtypes.values()):
        raise CheckpointError(f"{path}: damaged, not the facts and number types of a store")
    return facts, dtypes


def _array(path: Path, dtype: str) -> np.ndarray:
    size = path.stat().st_size
    if size % np.dtype(dtype).itemsize:
        raise CheckpointError(f"{path}: {size} bytes are no whole count of numbers")
    return np.memmap(path, np.dtype(dtype), mode="r") if size else np.empty(0, dtype)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CheckpointError(f"{path}: damaged, not UTF-8") from None
