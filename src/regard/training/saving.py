"""Saving while training: the weights to use, then the checkpoint to go on from, then the removal of old ones.

In this order a kill between any two loses nothing: a resume makes the steps after the last checkpoint again.
"""

from __future__ import annotations

import time

from regard.errors import ResourceError
from regard.storage import tensors
from regard.training import checkpoint
from regard.training.report import read_pending
from regard.training.run_folder import WEIGHTS
from regard.training.session import Session

SECONDS_BETWEEN = 30.0
# Saving takes at most a twentieth of the time.
WORK_PER_SAVE = 20.0


def save_is_due(session: Session) -> bool:
    """Whether this step is one to save at."""
    step, every = session.counters.step, session.settings.save_every
    if step == session.saved_step or step == 0:
        return False
    if every is not None:
        return step % every == 0
    wait = max(SECONDS_BETWEEN, WORK_PER_SAVE * session.save_seconds)
    return time.monotonic() - session.saved_at >= wait


def save(session: Session) -> None:
    """Put the run as it stands on disk. Only what was read back and found right is announced."""
    read_pending(session)
    start = time.monotonic()
    try:
        publish_weights(session)
        if session.saved_step != session.counters.step:
            path = checkpoint.save(session.run.checkpoints, session.counters.step, session.contents())
            session.saved_step = session.counters.step
            best = session.counters.best_step
            checkpoint.prune(session.run.checkpoints, session.settings.keep, () if best is None else (best,))
            session.display.saved(session.counters.step, path)
    except ResourceError as error:
        if session.settings.on_save_error == "stop":
            raise
        session.display.note(f"WARNING: not saved at step {session.counters.step}: {error}")
    session.saved_at = session.read_at = time.monotonic()
    session.save_seconds = session.saved_at - start


def publish_weights(session: Session) -> None:
    """Put the weights to use into the run folder: the best so far, or the present ones while none were evaluated."""
    metadata = tensors.weights_metadata(session.model)
    if session.best_weights is not None:
        session.run.publish({WEIGHTS: tensors.chunks(session.best_weights, metadata)})
        session.best_weights = None
    elif session.counters.best_step is None:
        with session.ema.in_place():
            session.run.publish({WEIGHTS: tensors.chunks(tensors.weights_of(session.model), metadata)})
