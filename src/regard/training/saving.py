"""Saving while training: the weights to use, then the checkpoint to go on from, then the removal of old ones.

    copy at the step -> training goes on, while a thread writes, syncs, hashes and names -> told at the next step

In this order a kill between any two loses nothing: a resume makes the steps after the last checkpoint again. The copy
is of one moment, so that what is written is what would have been written then. A second save waits for the first, and
so does the end. Of many processes each has such a thread, and the threads have connections of their own
(`Ranks.beside`): what they exchange never comes between what the steps exchange.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import torch
from torch import Tensor

from regard.core.memory import host_memory
from regard.errors import ResourceError
from regard.storage import tensors
from regard.training import checkpoint
from regard.training.checkpoint import Contents
from regard.training.parallel.ranks import Ranks
from regard.training.report import read_pending
from regard.training.session import Session

SECONDS_BETWEEN = 30.0
# Saving takes at most a twentieth of the time, in the background too: there it takes it from the disk and a processor.
WORK_PER_SAVE = 20.0
# Copies may fill a quarter of the host's memory; where they would fill more, training waits for the disk instead.
ROOM = 4
COPIES = 4  # the weights to use and to go on with, and two moments of each
HOST = torch.device("cpu")


class Abandoned(BaseException):
    """Raised in the thread of a save that nobody waits for."""


class _Copies(dict[str, Tensor]):
    """Tensors of one moment, which are handed out for writing as long as somebody waits for it."""

    def __init__(self, copies: Mapping[str, Tensor], abandoned: Event) -> None:
        super().__init__(copies)
        self.abandoned = abandoned

    def __getitem__(self, name: str) -> Tensor:
        if self.abandoned.is_set():
            raise Abandoned
        return super().__getitem__(name)


@dataclass
class Save:
    """What one save writes, as it was at its step.

    weights   to use, and not yet in the run folder. metadata: what their file says beside them.
    contents  of the checkpoint; None where this step has one.
    """

    step: int
    start: float
    weights: dict[str, Tensor] | None
    metadata: Mapping[str, str]
    contents: Contents | None
    path: Path | None = None
    writing: Future[None] | None = None
    abandoned: Event = field(default_factory=Event)

    @property
    def is_under_way(self) -> bool:
        return self.writing is not None and not self.writing.done()

    def write(self, session: Session, ranks: Ranks) -> None:
        """Put it on disk: only what was read back and found right gets its name."""
        if self.weights is not None:
            ranks.publish_weights(session.run, self.weights, self.metadata)
        if self.contents is not None:
            folder, best = session.run.checkpoints, self.contents.state["counters"]["best_step"]
            self.path = ranks.save_checkpoint(folder, self.step, self.contents)
            protected = () if best is None else (best,)
            ranks.first(lambda: checkpoint.prune(folder, session.settings.keep, protected))


def save_is_due(session: Session) -> bool:
    """Whether this step is one to save at."""
    step, every = session.counters.step, session.settings.save_every
    if step == session.saved_step or step == 0:
        return False
    if every is not None:
        return step % every == 0
    wait = max(SECONDS_BETWEEN, WORK_PER_SAVE * session.save_seconds)
    return session.saving is None and session.ranks.now() - session.saved_at >= wait


def is_under_way(session: Session) -> bool:
    """Whether this process is writing a save."""
    return session.saving is not None and session.saving.is_under_way


def save(session: Session, *, last: bool = False) -> None:
    """Put the run as it stands on disk, in the background unless it is the `last` save, after which no step comes."""
    read_pending(session)
    conclude(session)
    in_background = not last and _in_background(session)
    one = _taken(session, in_background)
    session.saved_step, session.best_weights = one.step, None
    if in_background:
        session.saving, thread = one, ThreadPoolExecutor(1, "save")
        one.writing = thread.submit(one.write, session, session.ranks.beside)
        thread.shutdown(wait=False)
    else:
        with _told(session, one):
            one.write(session, session.ranks)
        session.save_seconds = session.ranks.now() - one.start
    session.saved_at, session.read_at = session.ranks.now(), time.monotonic()


def conclude(session: Session) -> None:
    """Wait for the save that is under way, if there is one, and tell what came of it. All processes call it at once."""
    one = session.saving
    if one is None or one.writing is None:
        return
    session.saving = None
    with _told(session, one):
        one.writing.result()
    session.ranks.shared(None)  # the time
    session.saved_at = session.ranks.now()
    session.save_seconds = session.saved_at - one.start


@contextmanager
def awaited(session: Session) -> Iterator[None]:
    """A block whose failure waits for the save that is under way; one that is to end the process at once gives it up.

    What comes of the save is told, and the failure of the block is what is raised.
    """
    try:
        yield
    except BaseException as error:
        one, session.saving = session.saving, None
        if one is not None and one.writing is not None:
            if not isinstance(error, Exception):
                one.abandoned.set()
            # Where another process is gone the exchange fails, which the block has told or is about to.
            with suppress(Exception, Abandoned), _told(session, one, stops=False):
                one.writing.result()
        raise


@contextmanager
def _told(session: Session, one: Save, *, stops: bool | None = None) -> Iterator[None]:
    """Announce what a save has written, or that it has not."""
    try:
        yield
    except ResourceError as error:
        session.saved_step = None
        if session.best_weights is None and session.counters.best_step is not None:
            session.best_weights = one.weights
        if session.settings.on_save_error == "stop" if stops is None else stops:
            raise
        session.display.note(f"WARNING: not saved at step {one.step}: {error}")
    else:
        if one.path is not None:
            session.display.saved(one.step, one.path)


def _in_background(session: Session) -> bool:
    """As said; where that is left open, unless the copies of a save would fill too much of the host's memory."""
    asked = session.settings.save_async
    if isinstance(asked, bool):
        return asked
    room = session.ranks.memory(host_memory(), HOST) // ROOM
    held = {name: session.ranks.local(tensor) for name, tensor in tensors.weights_of(session.model).items()}
    return session.ranks.shared(COPIES * tensors.size_of(held) <= room)


def _taken(session: Session, copied: bool) -> Save:
    """What a save of this moment writes; as copies, where training goes on meanwhile."""
    step, start, abandoned = session.counters.step, session.ranks.now(), Event()

    def copy(named: Mapping[str, Tensor], room: str) -> dict[str, Tensor]:
        return _Copies(session.ranks.kept(named, session.room.setdefault(room, {})), abandoned)

    contents, weights = session.contents() if session.saved_step != step else None, session.best_weights
    if contents is not None and copied:
        parts = {"weights": copy(contents.weights, "weights"), "training": copy(contents.training, "training")}
        contents = dataclasses.replace(contents, **parts)
    if weights is None and session.counters.best_step is None:
        if contents is not None and session.ema.decay == 0:
            weights = dict(contents.weights)
        else:
            with session.ema.in_place():
                weights = copy(tensors.weights_of(session.model), "use")
    return Save(step, start, weights, tensors.weights_metadata(session.model), contents, abandoned=abandoned)
