"""Data as a caller has it: a path stays one, and what lies in memory has an address for as long as it is needed.

with at_hand(frame, "data") as path: ...      memory:data, which every task takes for a path
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from regard.data.in_memory import described
from regard.data.source import STDIN, is_pattern
from regard.data.tabular import held, is_address, table_of
from regard.data.worlds import PREFIX
from regard.errors import UsageError


class Columned(Protocol):
    """An Arrow table or a data set: what has named columns and is no mapping."""

    @property
    def column_names(self) -> Any: ...


# What `train`, `compare` and `evaluate` take: a path or an address, or anything of regard/data/in_memory.py.
Data: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Iterable[Any] | Columned
WORDS = 4  # so many of them make a text rather than a name
SHOWN = 60


@contextmanager
def at_hand(data: Data | None, name: str) -> Iterator[str | None]:
    """What a run is told of data: its path, or an address within the context. None: nothing was said.

    name  of the address, and what the data is called in messages.
    """
    if data is None or isinstance(data, str | os.PathLike):
        yield None if data is None else _path(data, name)
        return
    with held(table_of(data, name), name) as address:
        yield address


def _path(data: str | os.PathLike[str], name: str) -> str:
    """A path as text; a text that is no path is refused with the way in which it can be given."""
    path = os.fspath(data)
    if not isinstance(path, str):
        raise UsageError(f"{name}: expected a path of characters, found {described(path)}")
    if not path.strip():
        raise UsageError(f"{name}: expected a path or data, found an empty text")
    if path.startswith(PREFIX) or is_address(path) or path == STDIN or _is_there(path):
        return path
    if "\n" in path or (len(path.split()) >= WORDS and not is_pattern(path)):
        begins = " ".join(path[: 2 * SHOWN].split())[:SHOWN]
        raise UsageError(
            f"{name}: a text of one piece is taken for a path, and there is no file called {begins!r}...; give what is "
            f"to be read as a list: [text]"
        )
    return path


def _is_there(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, ValueError):  # too long for a name, or with a zero in it
        return False
