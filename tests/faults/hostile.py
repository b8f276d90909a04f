"""Run folders in hostile hands: any value of any JSON file replaced, and a manifest that vouches for it."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.storage import manifest
from regard.storage.manifest import Manifest

DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]
GONE = object()
VALUES = {
    "null": None,
    "-1": -1,
    "0": 0,
    "1e18": 10**18,
    "huge": 10**400,
    "float": 1e18,
    "x": "x",
    "list": [],
    "one": [1],
    "object": {},
    "true": True,
    "deep": DEEP,
    "long": "x" * 100_000,
    "colon": "pay:x",
    "gone": GONE,
}
KEYS = ("zzz.a", "", "pay:x", "\x1b[31m", "x" * 10_000, "0", "model.zzz", "kind", "__class__")


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in a JSON value, itself first; of a list, whose parts are alike, the first place."""
    yield before
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*before, key))
    elif isinstance(value, list):
        for place in range(min(1, len(value))):
            yield from places(value[place], (*before, place))


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at a place, or without it."""
    if not place:
        return None if new is GONE else new
    changed = copy.deepcopy(value)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if new is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = new
    return changed


def renamed(value: Any, place: tuple[Any, ...], key: str) -> Any:
    """A copy in which the value at a place, which ends in a key, stands under another one."""
    changed = copy.deepcopy(value)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[key] = inner.pop(place[-1])
    return changed


def write(folder: Path, name: str, content: Any) -> None:
    """Write a JSON file of a folder, and a manifest that vouches for it."""
    (folder / name).write_bytes(json.dumps(content).encode())
    vouch(folder, name)


def vouch(folder: Path, *names: str) -> None:
    """A manifest that says of some files what they are now."""
    old = manifest.read(folder)
    files = dict(old.files) | {name: manifest.hash_file(folder / name) for name in names}
    (folder / manifest.NAME).write_bytes(Manifest(files, old.facts).to_bytes())


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and its numbers."""
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def with_header(header: Any, numbers: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + numbers
