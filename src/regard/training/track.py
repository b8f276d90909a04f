"""Trackers: where the numbers of a run go beside its own folder, such as TensorBoard, W&B and MLflow.

    @register_tracker("notebook")
    class Notebook:
        def __init__(self, run: TrackedRun, options: dict[str, str]) -> None: ...
        def start(self, settings: Mapping[str, Any]) -> None: ...
        def log(self, step: int, metrics: Mapping[str, float]) -> None: ...
        def text(self, step: int, text: str) -> None: ...
        def end(self, status: str) -> None: ...

`--track notebook:key=value,key=value` makes one for a run; several stand one after the other. Built-in ones and those
from outside (`--import`, entry points of `regard.trackers`) register alike. What is not asked for is not imported. One
that is asked for and not there is refused before anything is trained; one that fails on the way says so once and is
left alone, and training goes on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from regard.core.plugin import load_entry_points
from regard.errors import Stopped, UsageError, nearest

# Name to file. The one line of a built-in tracker.
BUILT_IN = {
    "tensorboard": "regard.training.trackers.tensorboard",
    "wandb": "regard.training.trackers.wandb",
    "mlflow": "regard.training.trackers.mlflow",
}
FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
FOLDER = "track"  # in a run folder, with a folder for each tracker


@dataclass(frozen=True)
class TrackedRun:
    """The run that a tracker is told of.

    folder  where it may write, within the run folder; made by whoever writes.
    name    of the run, and `group` what it is one of: the folder above, such as that of a comparison.
    """

    folder: Path
    name: str
    group: str


class Tracker(Protocol):
    """What a tracker must offer. It is told of a start, then of numbers and texts by step, then of an end.

    status: "finished", "stopped" with a checkpoint, or "failed".
    """

    def start(self, settings: Mapping[str, Any]) -> None: ...
    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...
    def text(self, step: int, text: str) -> None: ...
    def end(self, status: str) -> None: ...


Makes = Callable[[TrackedRun, dict[str, str]], Tracker]
T = TypeVar("T", bound=Makes)
_registered: dict[str, Makes] = {}


def register_tracker(name: str) -> Callable[[T], T]:
    """Add the decorated class under a name. A name may be taken once."""

    def add(tracker: T) -> T:
        if not name.isidentifier():
            raise UsageError(f"{name!r} cannot be the name of a tracker: it is one word of letters")
        known = _registered.get(name)
        taken = known.__module__ if known else BUILT_IN.get(name, tracker.__module__)
        if taken != tracker.__module__:
            raise UsageError(f"the tracker name {name!r} is taken by {taken}")
        _registered[name] = tracker
        return tracker

    return add


def tracker_named(name: str) -> Makes:
    """What makes the tracker of that name; an unknown one names the nearest."""
    if name not in _registered and name in BUILT_IN:
        importlib.import_module(BUILT_IN[name])
    if name not in _registered:
        load_entry_points("regard.trackers")
    if name not in _registered:
        known = [*BUILT_IN, *(one for one in _registered if one not in BUILT_IN)]
        outside = "a tracker from outside the package is imported first: --import MODULE"
        raise UsageError(f"train.track: unknown tracker {name!r}{nearest(name, known)} ({outside})")
    return _registered[name]


def parsed(text: str | None) -> dict[str, dict[str, str]]:
    """The options of each tracker that a setting asks for.

    >>> parsed("tensorboard mlflow:uri=http://here:5000,experiment=mine")
    {'tensorboard': {}, 'mlflow': {'uri': 'http://here:5000', 'experiment': 'mine'}}
    """
    found: dict[str, dict[str, str]] = {}
    for one in (text or "").split():
        name, _, options = one.partition(":")
        found[name] = {}
        for option in filter(None, options.split(",")):
            key, equals, value = option.partition("=")
            if not equals or not key:
                raise UsageError(f"train.track: {one}: options are KEY=VALUE, joined by commas, found {option!r}")
            found[name][key] = value
    return found


def names_in(text: str | None) -> str | None:
    """The trackers of a setting without their options: all that a file keeps, which may be handed on.

    >>> names_in("wandb:project=mine tensorboard"), names_in(None)
    ('wandb tensorboard', None)
    """
    return None if text is None else " ".join(one.partition(":")[0] for one in text.split())


def refuse_absent(text: str | None) -> None:
    """Refuse trackers that are unknown, not installed or given options that they do not have."""
    for name, options in parsed(text).items():
        tracker_named(name)(TrackedRun(Path(), "", ""), options)


@dataclass
class Tracking:
    """The trackers of one run. note: where it is said that one failed."""

    trackers: dict[str, Tracker] = field(default_factory=dict)
    note: Callable[[str], None] = print

    @contextmanager
    def run(self, settings: Mapping[str, Any]) -> Iterator[None]:
        """The block is what is tracked; how it ends is told.

        settings: of the run, as its config.json has them.
        """
        status = FAILED
        plain = flat({key: settings.get(key, {}) for key in ("model", "data", "train", "environment")})
        self._each(lambda tracker: tracker.start(plain))
        try:
            yield
            status = FINISHED
        except Stopped:
            status = STOPPED
            raise
        finally:
            self._each(lambda tracker: tracker.end(status))

    def log(self, record: Mapping[str, Any]) -> None:
        """The numbers of a line of metrics.jsonl."""
        numbers = {name: value for name, value in record.items() if type(value) in (int, float) and name != "step"}
        self._each(lambda tracker: tracker.log(record["step"], numbers))

    def text(self, step: int, text: str) -> None:
        """What the model wrote."""
        self._each(lambda tracker: tracker.text(step, text))

    def _each(self, tell: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self.trackers.items()):
            try:
                tell(tracker)
            # Whatever a tracker raises, it is not the training's.
            except Exception as error:
                del self.trackers[name]
                self.note(f"{name}: tracking failed ({type(error).__name__}: {error}); training goes on without it")


def tracking(text: str | None, path: Path, note: Callable[[str], None]) -> Tracking:
    """The trackers that a setting asks for, of the run at `path`."""
    place = path.absolute()
    made = {
        name: tracker_named(name)(TrackedRun(place / FOLDER / name, place.name, place.parent.name), options)
        for name, options in parsed(text).items()
    }
    return Tracking(made, note)


def flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings by their dotted names; the config tree of a model, which says the same in other words, is left out.

    >>> flat({"train": {"lr": 0.1, "betas": [0.9, 0.99]}, "model": {"name": "gpt", "config": {"kind": "lm"}}})
    {'train.lr': 0.1, 'train.betas': '[0.9, 0.99]', 'model.name': 'gpt'}
    """
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{key}.") if key != "config" else {}
        else:
            found[f"{above}{key}"] = value if isinstance(value, (str, int, float, type(None))) else str(value)
    return found


def taken(options: dict[str, str], allowed: tuple[str, ...], name: str) -> dict[str, str]:
    """The options of a tracker, refused where it has no such one."""
    for key in options:
        if key not in allowed:
            raise UsageError(f"train.track: {name} has no option {key!r}{nearest(key, allowed)}")
    return options


def installed(module: str, advice: str) -> Any:
    """A module that a tracker needs, or the one line that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.rpartition(".")[2]
        raise UsageError(f"train.track: {name} is not installed or cannot be used ({error}); {advice}") from None
