"""The names by which runs are asked for: the shortest end of a path that no other run has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import nearest
from regard.serving.http.errors import Error


def names_of(paths: Iterable[Path]) -> dict[str, Path]:
    """
    >>> sorted(names_of([Path("runs/a"), Path("old/b"), Path("new/b")]))
    ['a', 'new/b', 'old/b']
    """
    every = list(dict.fromkeys(path.absolute() for path in paths))
    found = {}
    for path in every:
        counts = range(1, len(path.parts))
        alone = (n for n in counts if sum(other.parts[-n:] == path.parts[-n:] for other in every) == 1)
        found["/".join(path.parts[-next(alone, len(path.parts) - 1) :])] = path
    return found


def named(name: str | None, known: Mapping[str, Any] | Collection[str]) -> str:
    """The run that is asked for; where there is one alone it need not be named."""
    if name is None and len(known) == 1:
        return next(iter(known))
    if name is None:
        raise Error(400, f"model: say which of {', '.join(sorted(known))}", param="model")
    if name not in known:
        message = f"there is no model {name[:100]!r}{nearest(name, known)}"
        raise Error(404, message, param="model", code="model_not_found")
    return name
