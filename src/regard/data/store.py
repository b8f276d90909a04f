"""A store: a folder of arrays and texts that is either whole or not there.

Everything is written to a temporary folder, synced, described in a manifest with size and SHA-256 of each file, and
moved to its place by one rename. On opening, every file is checked against the manifest, and arrays are mapped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.config import decode
from regard.errors import LONGEST_NAME, DataError, ResourceError, blamed_on
from regard.storage.arrays import sha256, slices
from regard.storage.regular import open_regular, read_regular
from regard.storage.temporary import remove_abandoned, temporary_folder

MANIFEST = "manifest.json"
TEMPORARY = ".preparing-"
LARGEST_MANIFEST = 1 << 24
DTYPES = ("<u2", "<u4", "<i8")


@dataclass(frozen=True)
class Store:
    """What a folder holds. `facts` are plain JSON values."""

    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]
    texts: dict[str, str]


def publish(folder: Path, store: Store) -> None:
    """Write a store to `folder`, which must not exist. If another process was first, its store stays."""
    content = {name: np.frombuffer(text.encode(), np.uint8) for name, text in store.texts.items()} | store.arrays
    files = {
        name: {
            "size": array.nbytes,
            "sha256": sha256(array).hexdigest(),
            "dtype": array.dtype.str if name in store.arrays else None,
        }
        for name, array in content.items()
    }
    manifest = {"format": "regard-store", "version": 1, "facts": store.facts, "files": files}
    sealed = json.dumps(manifest | {"sha256": _seal(manifest)}, indent=1).encode()
    content[MANIFEST] = np.frombuffer(sealed, np.uint8)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder.parent, TEMPORARY) as temporary:
            for name, data in content.items():
                _write(temporary / name, data)
            _sync(temporary)
            if not folder.exists():
                os.rename(temporary, folder)
                _sync(folder.parent)
    except OSError as error:
        if not folder.exists():
            raise ResourceError(
                f"cannot write {folder}: {error.strerror or error}; free space or choose another cache"
            ) from None


def open_store(folder: Path) -> Store:
    """The store in `folder`, every file of it checked."""
    remove_abandoned(folder.parent, TEMPORARY)
    manifest = _manifest(folder)
    files: dict[str, dict[str, Any]] = manifest["files"]
    present = {entry.name for entry in folder.iterdir()}
    extra = sorted(present - files.keys() - {MANIFEST})
    if extra:
        raise DataError(f"{folder / extra[0]} does not belong there{advice(folder)}")
    arrays, texts = {}, {}
    for name, facts in files.items():
        data = _verified(folder, name, facts)
        with blamed_on(folder / name, DataError, advice(folder)):
            if facts["dtype"] is None:
                texts[name] = data.tobytes().decode()
            else:
                arrays[name] = data.view(facts["dtype"])
    return Store(manifest["facts"], arrays, texts)


def _verified(folder: Path, name: str, facts: Mapping[str, Any]) -> np.ndarray:
    """The bytes of a file, mapped, after comparing them with what the manifest says."""
    path = folder / name
    try:
        with open_regular(path, links=False) as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}{advice(folder)}") from None
    if size != facts["size"]:
        raise DataError(f"{path} has {size} bytes and should have {facts['size']}{advice(folder)}")
    data = np.memmap(path, mode="r") if size else np.empty(0, np.uint8)
    found = sha256(data).hexdigest()
    if found != facts["sha256"]:
        wanted = facts["sha256"]
        raise DataError(f"{path} is damaged: SHA-256 {found[:12]} and should be {wanted[:12]}{advice(folder)}")
    return data


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(read_regular(path, LARGEST_MANIFEST))
        seal = manifest.pop("sha256")
        sound = seal == _seal(manifest) and manifest["format"] == "regard-store"
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}{advice(folder)}") from None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        sound, manifest = False, {}
    if not sound:
        raise DataError(f"{path} is damaged{advice(folder)}")
    if manifest.get("version") != 1:
        version = str(manifest.get("version"))[:LONGEST_NAME]
        raise DataError(f"{path} has format version {version}, this regard reads version 1{advice(folder)}")
    with blamed_on(path, DataError, advice(folder)):
        if not isinstance(manifest["facts"], dict):
            raise TypeError("facts: expected an object")
        for name, facts in manifest["files"].items():
            is_file = Path(name).name == name and name not in (".", "..", MANIFEST)
            if not is_file or facts["dtype"] not in (None, *DTYPES):
                raise DataError(f"{path} names an impossible file {name[:LONGEST_NAME]!r}{advice(folder)}")
            decode(facts["size"], int, f"files.{name}.size")
            decode(facts["sha256"], str, f"files.{name}.sha256")
    return manifest


def _seal(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def advice(folder: Path) -> str:
    """What to do with a store that cannot be used."""
    return f"; delete the folder {folder} and it will be prepared again"


def _write(path: Path, array: np.ndarray) -> None:
    with open(path, "wb") as stream:
        for (part,) in slices(array):
            stream.write(np.ascontiguousarray(part).data)
        stream.flush()
        os.fsync(stream.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
