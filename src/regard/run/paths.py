"""Where a run lives: the folder it is given when none is named, and what the one of an earlier run says."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from regard.errors import CheckpointError, UsageError, blamed_on
from regard.run.settings import Layer, Origin, resolve

RUNS = Path("runs")
LONGEST, MOST_BYTES = 64, 200  # characters and bytes of a run's name; file systems take 255 bytes


def saved_settings(path: Path) -> Layer:
    """The settings of the run in a folder, as the lowest layer of those that continue it."""
    from regard.training import run_folder

    config = run_folder.read_config(path)
    if "imported" in config:
        raise UsageError(f"{path}: was imported and never trained here; a training begins with its weights by --from")
    try:
        origins = config["origins"]
        model = {"name": config["model"]["name"], "size": config["model"]["size"], **config["model"]["settings"]}
        values = {f"model.{key}": value for key, value in model.items()}
        for section in ("data", "train"):
            values |= {f"{section}.{key}": value for key, value in config[section].items()}
        layer = {key: Origin(values[key], origin) for key, origin in origins.items() if key in values}
    except KeyError:
        raise CheckpointError(
            f"{path / run_folder.CONFIG}: does not say how the run was started; start a new one"
        ) from None
    with blamed_on(path / run_folder.CONFIG):
        resolve(layer)
    return layer


def refuse_another(path: Path, saved: Layer, given: Layer) -> None:
    """A run that goes on keeps its model and its task."""
    for key in ("model.name", "data.task"):
        if key in saved and key in given and given[key].value not in (saved[key].value, "auto"):
            raise UsageError(
                f"{path}: {key} is {saved[key].value}, and a resume cannot make it {given[key].value}; choose another "
                f"--out"
            )


def free_path(name: str) -> Path:
    """runs/NAME, or runs/NAME-2 and so on when it is taken."""
    candidates = (RUNS / (name if number == 1 else f"{name}-{number}") for number in itertools.count(1))
    return next(path for path in candidates if not path.exists())


def latest_path(name: str) -> Path:
    """The last of runs/NAME, runs/NAME-2 and so on."""
    taken = [RUNS / name]
    for number in itertools.count(2):
        path = RUNS / f"{name}-{number}"
        if not path.exists():
            return taken[-1]
        taken.append(path)
    raise AssertionError("unreachable")


def require_name(path: Path) -> None:
    """Refuse names that a command, a terminal or a file system would trip over; spaces and any letters are fine."""
    name = path.name
    is_fine = 0 < len(name) <= LONGEST and len(os.fsencode(name)) <= MOST_BYTES and name.isprintable()
    if not is_fine or name in (".", "..") or name != name.strip() or name.startswith("-"):
        raise UsageError(
            f"--out {path}: a run's name has 1 to {LONGEST} characters that can be printed, no space at an end and no "
            f"dash in front, found {name!r}"
        )
