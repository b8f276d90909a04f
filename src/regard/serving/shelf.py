"""The runs that the page shows: folders that were named, or those under ./runs, the newest first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError
from regard.run.readers import reader_of
from regard.serving.curves import told_of
from regard.tasks import TEXT, saved_task
from regard.training.run_folder import CONFIG, near_runs, read_config

HOME = "runs"
MOST = 200
SEEN = 20_000  # folders that are looked into, at most
DEPTH = 3
RATES = "rates"  # trials of a comparison: nobody looks into those


def found_runs(named: Sequence[str], strict: bool = True) -> dict[str, Path]:
    """Run folders by their names. A named folder is a run or holds some; an ARPA file is one by itself.

    strict  whether a named folder without a run is refused; one that has gone since is not.
    """
    if not named:
        return _by_name(_newest(Path(HOME)))
    found: list[Path] = []
    for name in named:
        path = Path(name).expanduser()
        inside = [path] if _is_run(path) else _newest(path)
        if not inside and strict:
            if not path.exists():
                raise CheckpointError(f"{name}: no such run folder{near_runs(path)}")
            raise CheckpointError(f"{name}: no run: there is no {CONFIG} in it or below it")
        found += inside
    return _by_name(found)


def facts(name: str, path: Path) -> dict[str, Any]:
    """What the list says of a run; of a damaged one, why it cannot be used."""
    told = {"name": name, "label": name.removeprefix(f"{HOME}/"), "path": name}
    if path.is_file():
        return told | {"model": "ngram", "task": TEXT}
    try:
        config = read_config(path)
        about = {"model": _told(config, "model", "name"), "task": saved_task(CONFIG, config).name}
    except Exception as error:  # one folder, whatever is in it, must not keep the others from being listed
        return told | {"error": str(error) or type(error).__name__}
    return told | about | told_of(path, config)


def _told(config: dict[str, Any], part: str, key: str) -> str:
    inside = config.get(part)
    value = inside.get(key) if isinstance(inside, dict) else None
    if not isinstance(value, str):
        raise CheckpointError(f"{CONFIG}: {part}.{key}: expected a name, found {value!r:.80}")
    return value


def _is_run(path: Path) -> bool:
    return (path / CONFIG).is_file() or ((path.is_file() or path.is_dir()) and reader_of(path) is not None)


def _newest(folder: Path) -> list[Path]:
    """The runs in a folder and in its folders that were written last."""
    found = [(-_written(path), path) for path in islice(_below(folder), SEEN)]
    return [path for _, path in sorted(found)[:MOST]]


def _written(run: Path) -> int:
    try:
        return (run / CONFIG).stat().st_mtime_ns
    except OSError:  # it has gone since
        return 0


def _below(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Runs in a folder and in its folders; what may not be looked into is passed over."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = folder / name
        if name.startswith(".") or name == RATES or not path.is_dir():
            continue
        if _is_run(path):
            yield path
        elif depth > 1:
            yield from _below(path, depth - 1)


def _by_name(paths: Iterable[Path]) -> dict[str, Path]:
    # A name that is no text stays one that can be sent and printed.
    return {path.as_posix().encode("utf-8", "backslashreplace").decode(): path for path in paths}
