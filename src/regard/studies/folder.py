"""The folder of a comparison: what lies in it, and what of that a new beginning takes away.

comparison.json   what was asked for: protocol, settings, common size; a folder without it is somebody else's
state.json        the trainings, see `ledger`
report.*          what it came to
rates/            short trainings, one for each learning rate
earlier/          trainings of other data, set aside
MODEL, MODEL-SEED run folders
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError, UsageError
from regard.storage import disk, manifest
from regard.storage.lock import LOCK
from regard.storage.manifest import read_json
from regard.studies.ledger import EARLIER, RATES, STATE, folder_name, read_state
from regard.training.run_folder import CONFIG

KEPT = "comparison.json"
REPORT = "report.json"
REPORTS = (REPORT, "report.html", "report.md")
LARGEST_SIZE = 1 << 50


def refuse_other(path: Path) -> None:
    """Refuse a folder of other things, and one in which a comparison's own names are what they cannot be."""
    names = [name for name in disk.names(path) if name != LOCK and not name.startswith(disk.TEMPORARY)]
    if names and KEPT not in names:
        held = (
            "already holds a run" if manifest.NAME in names else f"not empty and not a comparison (it has {names[0]})"
        )
        raise UsageError(f"{path}: {held}; choose another --out")
    for name in (KEPT, STATE, *REPORTS):
        if (path / name).is_dir():
            raise CheckpointError(f"{path / name}: is a folder where a file of the comparison belongs; move it away")


def read_kept(path: Path) -> dict[str, Any] | None:
    """What the comparison in a folder was asked for; None where there is none yet."""
    if not os.path.lexists(path / KEPT):
        return None
    told = read_json(path / KEPT)
    hints = {"protocol": dict, "settings": dict, "parameters": int}
    if not isinstance(told, dict) or not all(isinstance(told.get(key), kind) for key, kind in hints.items()):
        raise CheckpointError(f"{path / KEPT}: not what a comparison keeps; choose another --out")
    if not 0 <= told["parameters"] <= LARGEST_SIZE:
        raise CheckpointError(f"{path / KEPT}: parameters: {told['parameters']} is no count; choose another --out")
    return told


def clear(path: Path) -> None:
    """Take an earlier comparison away: its own files and the runs that it made, and nothing else.

    Where state.json is damaged it goes alone: which runs were made is then not known, and the race sets them aside.
    """
    if read_kept(path) is None:
        return
    try:
        made = {folder_name(name) for name in read_state(path)}
    except CheckpointError:
        made = set()
    else:
        for name in (*REPORTS, EARLIER, RATES):
            _take_away(path / name)
    for name in sorted(made):
        if "/" not in name and _is_run(path / name):
            _take_away(path / name)
    _take_away(path / STATE)


def _is_run(path: Path) -> bool:
    """Whether a run lies there, or what was begun of one: a link to one is none."""
    names = set(disk.names(path)) if disk.is_plain_folder(path) else set()
    return {CONFIG, manifest.NAME} <= names or LOCK in names


def _take_away(path: Path) -> None:
    if os.path.lexists(path):
        disk.remove_tree(path)
