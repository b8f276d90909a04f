"""The runs that the page shows: folders that were named, or those under ./runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError, RegardError
from regard.tasks import TEXT
from regard.training.folder import CONFIG, read_config

HOME = "runs"
MOST = 200
DEPTH = 3
RATES = "rates"  # trials of a comparison: nobody looks into those


def found_runs(named: Sequence[str]) -> dict[str, Path]:
    """Run folders by their names. A named folder is a run or holds some; an ARPA file is one by itself."""
    if not named:
        return _by_name(islice(_below(Path(HOME)), MOST))
    found: list[Path] = []
    for name in named:
        path = Path(name).expanduser()
        inside = [path] if _is_run(path) else list(islice(_below(path), MOST))
        if not inside:
            raise CheckpointError(f"{name}: no run: there is no {CONFIG} in it or below it")
        found += inside
    return _by_name(found)


def facts(name: str, path: Path) -> dict[str, Any]:
    """What the list says of a run; of a damaged one, why it cannot be used."""
    told = {"name": name, "label": name.removeprefix(f"{HOME}/"), "path": str(path)}
    if path.is_file():
        return told | {"model": "ngram", "task": TEXT}
    try:
        config = read_config(path)
    except RegardError as error:
        return told | {"error": str(error)}
    return told | {"model": config.get("model", {}).get("name"), "task": config.get("data", {}).get("task", TEXT)}


def _is_run(path: Path) -> bool:
    return (path / CONFIG).is_file() or (path.is_file() and ".arpa" in path.suffixes[-2:])


def _below(folder: Path, depth: int = DEPTH) -> Iterable[Path]:
    """Runs in a folder and in its folders, in the order of their names."""
    if depth == 0 or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == RATES or not path.is_dir():
            continue
        if _is_run(path):
            yield path
        else:
            yield from _below(path, depth - 1)


def _by_name(paths: Iterable[Path]) -> dict[str, Path]:
    return {path.as_posix(): path for path in paths}
