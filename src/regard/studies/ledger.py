"""The ledger of a comparison, state.json: which training lies in which folder, and what came of it.

A training is known by its mark (see `identity`). Whatever another one of the same name left is set aside in `earlier`,
under a name that nothing has yet, and comes back from there when it is asked for again: nothing that was trained is
lost, and nothing finished is trained twice. Names of folders are made of the models' labels, never read from a file.

The folder of a comparison: what lies in it, and what of that a new beginning takes away.

comparison.json   what was asked for: protocol, settings, common size; a folder without it is somebody else's
state.json        the ledger
report.*          what it came to
rates/            short trainings, one for each learning rate
earlier/          trainings of other data, set aside
MODEL, MODEL-SEED run folders
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from regard.errors import CheckpointError, UsageError, blamed_on
from regard.storage import disk, manifest
from regard.storage.lock import LOCK
from regard.storage.manifest import read_json
from regard.studies import outcome as outcomes
from regard.training.run_folder import CONFIG

STATE = "state.json"
LARGEST_STATE = 1 << 28
EARLIER = "earlier"
RATES = "rates"
UNKNOWN = "unknown"
DIGEST = re.compile(r"[0-9a-f]{16}")
KEPT = "comparison.json"
REPORT = "report.json"
REPORTS = (REPORT, "report.html", "report.md")
LARGEST_SIZE = 1 << 50
# Settings that comparisons of an earlier regard say nothing of, each at what was so then.
LATER = {"train.refit": False}


class Entry(TypedDict):
    """A training by its mark; outcome None: begun and not finished."""

    digest: str
    outcome: dict[str, Any] | None


class Ledger:
    """The trainings of the comparison in the folder `out`. note: what a person should know of what is moved."""

    def __init__(self, out: Path, note: Callable[[str], None]) -> None:
        self.out, self.note = out, note
        self.entries = read_state(out)

    def folder(self, name: str) -> Path:
        """Where the training of that name lies, or will; a link in its place is refused."""
        path = self.out / folder_name(name)
        for part in (path, path.parent):
            if part != self.out and part.is_symlink():
                raise CheckpointError(f"{part}: is a link where a folder of the comparison belongs; move it away")
        return path

    def outcome(self, name: str, mark: str) -> dict[str, Any] | None:
        """What came of the training with that mark, if it was finished and is there, now or from `earlier`."""
        path = self.folder(name)
        if not self._holds(name, mark, path):
            self._bring_back(name, mark, path)
        found = self.entries[name]["outcome"] if self._holds(name, mark, path) else None
        return None if found is None else found | {"path": str(path)}

    def make_way(self, name: str, mark: str) -> None:
        """Set aside what another training left in the place of that name; what one with that mark left stays."""
        path = self.folder(name)
        known = self.entries.get(name)
        if (path / CONFIG).exists() and (known is None or known["digest"] != mark):
            self._set_aside(name, path)

    def write_down(self, name: str, mark: str, outcome: dict[str, Any] | None) -> None:
        """Before a training what it is, after it what it came to."""
        self.entries[name] = {"digest": mark, "outcome": outcome}
        disk.publish(self.out / STATE, [json.dumps(self.entries).encode()])

    def _holds(self, name: str, mark: str, path: Path) -> bool:
        entry = self.entries.get(name)
        return entry is not None and entry["digest"] == mark and entry["outcome"] is not None and path.exists()

    def _set_aside(self, name: str, path: Path) -> None:
        """Move a run away. The ledger says first where it will be: a kill between the two loses nothing."""
        known = self.entries.get(name)
        place = self._free(f"{EARLIER}/{name}-{known['digest'] if known is not None else UNKNOWN}")
        if known is not None:
            self.write_down(place, known["digest"], known["outcome"])
        target = self.folder(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        disk.rename(path, target)
        self.note(f"{name}: the run of other data or settings that was there is now {target}")

    def _free(self, name: str) -> str:
        """That name, or with a number: nothing lies there."""
        number, found = 1, name
        while os.path.lexists(self.folder(found)):
            number += 1
            found = f"{name}-{number}"
        return found

    def _bring_back(self, name: str, mark: str, path: Path) -> None:
        """Put a finished training that was set aside where it was, and what is there aside."""
        place = re.compile(re.escape(f"{EARLIER}/{name}-{mark}") + r"(-[0-9]+)?")
        kept = [one for one in self.entries if place.fullmatch(one) and self._holds(one, mark, self.folder(one))]
        if not kept:
            return
        if os.path.lexists(path):
            self._set_aside(name, path)
        self.write_down(name, mark, self.entries[kept[0]]["outcome"])
        disk.rename(self.folder(kept[0]), path)
        del self.entries[kept[0]]
        self.note(f"{name}: the finished run of the same data and settings is back from {EARLIER}")


def read_state(out: Path) -> dict[str, Entry]:
    """Trainings of an earlier go at this comparison, finished or begun."""
    file = out / STATE
    if not os.path.lexists(file):
        return {}
    state = read_json(file, LARGEST_STATE, constants=True)
    with blamed_on(file):
        if not isinstance(state, dict):
            raise UsageError("not the trainings of a comparison; begin anew with --force")
        return {name: _entry(name, one) for name, one in state.items()}


def folder_name(name: str) -> str:
    """The name of a training as that of a folder: of its own, and of no folder above.

    >>> folder_name("rates/lstm?n_layers=3-0.001"), folder_name("lstm?start=../a")
    ('rates/lstm_n_layers-3-0.001', 'lstm_start-.._a')
    """
    above = ""
    for part in (EARLIER, RATES):
        if name.startswith(f"{part}/"):
            above, name = f"{above}{part}/", name.removeprefix(f"{part}/")
    plain = "".join(c if c.isalnum() or c in "._-" else {"=": "-"}.get(c, "_") for c in name)
    return above + (f"_{plain}" if plain.startswith(".") else plain)


def _entry(name: str, told: Any) -> Entry:
    if not isinstance(told, dict) or not isinstance(told.get("digest"), str) or not DIGEST.fullmatch(told["digest"]):
        raise UsageError(f"{name}: not a training of a comparison; begin anew with --force")
    outcome = told.get("outcome")
    if outcome is None:
        return {"digest": told["digest"], "outcome": None}
    is_trial = name.removeprefix(f"{EARLIER}/").startswith(f"{RATES}/")
    return {"digest": told["digest"], "outcome": outcomes.checked(outcome, measured=not is_trial)}


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
    starts = told.get("starts", {}) if isinstance(told, dict) else None
    if not isinstance(starts, dict) or not all(isinstance(told.get(key), kind) for key, kind in hints.items()):
        raise CheckpointError(f"{path / KEPT}: not what a comparison keeps; choose another --out")
    if not 0 <= told["parameters"] <= LARGEST_SIZE:
        raise CheckpointError(f"{path / KEPT}: parameters: {told['parameters']} is no count; choose another --out")
    return told


def agreed(path: Path, asked: Mapping[str, Any], starts: Mapping[str, str], common: int, data: str) -> int:
    """The common size, which a comparison that goes on with the same data keeps; other settings are refused.

    asked   its protocol and the settings of every model.
    starts  runs that models begin with, each with the hash of its weights: one that has changed is refused.
    """
    told = read_kept(path)
    if told is None:
        return common
    here = json.loads(json.dumps(asked, default=str))
    there = {key: then for key, then in LATER.items() if key in here} | told["protocol"] | told["settings"]
    apart = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
    if apart:
        shown = "; ".join(f"{key} {there.get(key)} there and {here.get(key)} here" for key in apart[:3])
        raise UsageError(
            f"{path} holds a comparison with other settings ({shown}): name another --out, or begin anew with --force"
        )
    before = told.get("starts", {})
    for run, version in starts.items():
        if before.get(run, version) != version:
            raise UsageError(
                f"--models {run}: the run has changed since {path} began; name another --out, or begin anew with "
                f"--force"
            )
    return told["parameters"] if told.get("data") == data else common


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
