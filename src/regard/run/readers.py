"""Readers of models that are no run folders: files and folders that other programs have written.

    register_reader("arpa", is_arpa, arpa_run)

`load` asks every reader in turn whether a path is its own. Formats of the package are registered by the modules below,
which are imported when something is first loaded; one from outside registers itself when its module is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.run.run import Run

# Modules that register readers. The one line of a format.
MODULES = ("regard.interop.formats",)


@dataclass(frozen=True)
class Reader:
    """name     of the format.
    matches  whether a path is of it, told by its name and what kind of file it is, without reading much.
    read     the model in a path, on a device, usable like a run of one's own.
    """

    name: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, str], Run]


_readers: dict[str, Reader] = {}


def register_reader(name: str, matches: Callable[[Path], bool], read: Callable[[Path, str], Run]) -> None:
    """Add a reader of a format; a later one of the same name takes its place."""
    _readers[name] = Reader(name, matches, read)


def reader_of(path: Path) -> Reader | None:
    """The reader whose format a path is of; None for a run folder."""
    _load_built_in()
    return next((reader for reader in _readers.values() if reader.matches(path)), None)


@cache
def _load_built_in() -> None:
    for module in MODULES:
        importlib.import_module(module)
