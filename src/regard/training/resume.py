"""Starting a run in its folder, or going on with the one that is there.

A run is what its model, its data and the identity settings say (training/settings.py): a folder that holds another one
is refused with what differs. One that holds the same goes on from its newest good checkpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.core.config import from_dict
from regard.errors import CheckpointError, UsageError
from regard.storage import disk, manifest, tensors
from regard.training import checkpoint, metrics, run_folder, settings
from regard.training.repair import repair
from regard.training.run_folder import CONFIG, LOGS, TRACKED, WEIGHTS, RunFolder
from regard.training.session import Session, description

# Parts of config.json that make a run what it is, beside the identity fields of its settings.
IDENTITY = (("model", "config"), ("data", "hash"), ("data", "tokenizer"))
SHOWN = 5


@dataclass(frozen=True)
class Resume:
    """Whether and how a run that is in the folder goes on.

    mode      "no": a run in the folder is an error. "last": from its newest checkpoint, which must be undamaged.
              "auto": from the newest undamaged one, with a warning for each that is not; without a run, start one.
    override  settings that may differ from those the run was started with, such as ("lr", "budget").
    """

    mode: Literal["no", "last", "auto"] = "no"
    override: Collection[str] = ()


def start_or_resume(session: Session, about: Mapping[str, Any], resume: Resume) -> str | None:
    """Bring the session and its folder to where the run begins or goes on.

    Of a run that has ended and has nothing left to do the reason is given back, and its folder left as it is. Of many
    processes the first one decides and writes; what it found all of them read.
    """
    ranks = session.ranks
    config = getattr(session.model, "config", None)
    asked = description(config, session.task.identity, session.settings, session.device, about)
    ranks.require_same(asked)
    is_new, path = ranks.first(lambda: _begun_or_found(session, asked, resume))
    if path is not None:
        session.restore(path, resume.override)
        session.start_clock()
    if is_new:
        return None
    done = ranks.first(lambda: _continued(session, asked, resume))
    session.counters = ranks.shared(session.counters)  # the best weights may have to be chosen anew
    return done


def _begun_or_found(session: Session, asked: dict[str, Any], resume: Resume) -> tuple[bool, Path | None]:
    """Whether a new run was begun; else the checkpoint that the one in the folder goes on from, if it has one."""
    run = session.run
    # Weights for use, weights to go on with and two moments of each: found now, not at the first save.
    disk.require_space(run.path, 4 * tensors.size_of(tensors.weights_of(session.model)))
    if run.is_new:
        _start(session, asked, resume)
        return True, None
    if resume.mode == "no":
        raise UsageError(f"{run.path}: already holds a run; continue it with --resume or choose another --out")
    require_same_run(run.config(), asked, resume.override)
    path, problems = checkpoint.newest(run.checkpoints, fall_back=resume.mode == "auto")
    for problem in problems:
        session.display.note(f"WARNING: {problem}; set aside, continuing from an older checkpoint")
    return False, path


def _continued(session: Session, asked: Mapping[str, Any], resume: Resume) -> str | None:
    """Make the folder ready for a session that stands where the run goes on; why it does not, if it does not."""
    run, saved = session.run, session.run.config()
    if session.saved_step is not None:
        _refuse_spent(session, saved)
    checkpoint.set_aside_after(run.checkpoints, session.counters.step)
    repair(session, "auto" if resume.mode == "auto" else "last")
    done = session.reason_to_end() if run.manifest.facts.get("reason") else None
    if done is not None:
        session.display.note(f"{_told_done(session, done)}: no step was made")
        return done
    if saved["train"] != asked["train"]:
        changed = {key: asked[key] for key in ("train", "origins") if key in asked}
        run.publish({CONFIG: run_folder.json_file(saved | changed)})
    run.open_logs()
    run.rewrite(run_folder.METRICS, metrics.up_to(run.path / run_folder.METRICS, session.counters.step))
    return None


def take_back(run: RunFolder) -> bool:
    """Remove a run without a checkpoint, which holds nothing that a new start would not make again; False: it has one.

    The manifest goes last: what is left of the others without it would be the folder of somebody else.
    """
    if disk.names(run.checkpoints) or WEIGHTS in run.manifest.files:
        return False
    for name in (*run.manifest.files, *LOGS, TRACKED, manifest.NAME):
        disk.discard(run.path / name)
    return True


def _refuse_spent(session: Session, saved: Mapping[str, Any]) -> None:
    """Refuse a new budget with which the run would end where it is."""
    if session.settings.budget != saved["train"].get("budget") and session.progress() >= 1:
        raise UsageError(_told_done(session, "budget"))


def _told_done(session: Session, reason: str) -> str:
    """Why a run does not go on, and with what it would."""
    budget, spent, where = session.budget, session.spent, session.run.path
    if reason == "budget":
        more = f"give more, e.g. --budget {budget.told(2 * spent)}"
        return f"{where}: budget {session.settings.budget} is already spent ({budget.told(spent)} in all); {more}"
    count = session.counters.since_best
    told = f"{where}: ended early, the held-out part had not improved for {count} evaluations"
    return f"{told}; a larger train.patience, or 0 for none, goes on"


def _start(session: Session, asked: dict[str, Any], resume: Resume) -> None:
    run = session.run
    if resume.mode == "last":
        raise CheckpointError(f"{run.path}: holds no run to continue")
    run.publish({**{name: [data] for name, data in session.task.files.items()}, CONFIG: run_folder.json_file(asked)})


def require_same_run(saved: Mapping[str, Any], asked: Mapping[str, Any], override: Collection[str]) -> None:
    """Refuse to go on with a run as another one. override: settings that may differ, as of `Resume`."""
    if not isinstance(saved.get("train"), dict):
        raise CheckpointError("config.json: has no training settings; the run cannot be continued")
    differences = []
    for section, key in IDENTITY:
        old, new = saved.get(section, {}).get(key), asked.get(section, {}).get(key)
        differences += _differences(_as_now(old) if key == "config" else old, new, f"{section}.{key}")
    if differences:
        more = f" and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
        listed = "; ".join(differences[:SHOWN])
        raise CheckpointError(
            f"another run is in the folder: {listed}{more}; choose another --out or give the old values"
        )
    settings.require_resumable(settings.from_dict(saved["train"]), settings.from_dict(asked["train"]), override)


def _as_now(saved: Any) -> Any:
    """The config of a model with the settings that its parts have had since, each at what it was before."""
    try:
        return from_dict(saved).to_dict()
    except UsageError:
        return saved  # it is told as what it is: another one


def _differences(old: Any, new: Any, where: str) -> list[str]:
    """Where two JSON values differ, leaf by leaf."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [line for key in keys for line in _differences(old.get(key), new.get(key), f"{where}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            line for i, pair in enumerate(zip(old, new, strict=True)) for line in _differences(*pair, f"{where}.{i}")
        ]
    return [] if old == new else [f"{where} is {_brief(old)} there and {_brief(new)} here"]


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
