"""Saving while training: the weights to use, then the checkpoint to go on from, then the removal of old ones.

In this order a kill between any two loses nothing: a resume makes the steps after the last checkpoint again.
"""

from __future__ import annotations

import time

from regard.errors import ResourceError
from regard.storage import tensors
from regard.training import checkpoint
from regard.training.report import read_pending
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
    return session.ranks.now() - session.saved_at >= wait


def save(session: Session) -> None:
    """Put the run as it stands on disk. Only what was read back and found right is announced."""
    read_pending(session)
    ranks, step, folder = session.ranks, session.counters.step, session.run.checkpoints
    start = ranks.now()
    try:
        publish_weights(session)
        if session.saved_step != step:
            path = ranks.save_checkpoint(folder, step, session.contents())
            session.saved_step = step
            best = session.counters.best_step
            protected = () if best is None else (best,)
            ranks.first(lambda: checkpoint.prune(folder, session.settings.keep, protected))
            session.display.saved(step, path)
    except ResourceError as error:
        if session.settings.on_save_error == "stop":
            raise
        session.display.note(f"WARNING: not saved at step {step}: {error}")
    session.saved_at, session.read_at = ranks.now(), time.monotonic()
    session.save_seconds = session.saved_at - start


def publish_weights(session: Session) -> None:
    """Put the weights to use into the run folder: the best so far, or the present ones while none were evaluated."""
    metadata = tensors.weights_metadata(session.model)
    if session.best_weights is not None:
        session.ranks.publish_weights(session.run, session.best_weights, metadata)
        session.best_weights = None
    elif session.counters.best_step is None:
        with session.ema.in_place():
            session.ranks.publish_weights(session.run, tensors.weights_of(session.model), metadata)
