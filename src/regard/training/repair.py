"""What is damaged in a run folder, put back before the first step, so that no run trains to its end and is of no use.

The best weights are put back from the checkpoint of their step, where there is one; the tokenizer and its like from the
task, which made them anew.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from regard.errors import CheckpointError
from regard.storage import manifest, tensors
from regard.training import checkpoint
from regard.training.run_folder import WEIGHTS
from regard.training.saved_tensors import saved_tensors
from regard.training.session import Session


def repair(session: Session, mode: Literal["last", "auto"]) -> None:
    """Check the files that a finished run is used by; called when the session stands where it goes on."""
    run = session.run
    for name, data in session.task.files.items():
        problem = _problem(session, name)
        if problem is not None:
            run.publish({name: [data]})
            session.display.note(f"WARNING: {problem}; put back")
    # Before the first evaluation the weights are those of the last step, which the next save writes anyway.
    problem = _problem(session, WEIGHTS) if session.counters.best_step is not None else None
    if problem is None:
        return
    best = _best_weights(session)
    if best is not None:
        run.publish({WEIGHTS: tensors.chunks(best, tensors.weights_metadata(session.model))})
        session.display.note(f"WARNING: {problem}; put back from the checkpoint of step {session.counters.best_step}")
    elif mode == "auto":
        session.counters.forget_best()
        session.display.note(f"WARNING: {problem}; no checkpoint holds the best weights, they are chosen anew")
    else:
        raise CheckpointError(
            f"{problem}; no checkpoint holds the best weights (step {session.counters.best_step}); --resume auto goes "
            f"on without them and chooses the best among what is to come"
        )


def _problem(session: Session, name: str) -> str | None:
    """What is wrong with a file that the manifest lists; None when nothing is."""
    run = session.run
    if name not in run.manifest.files:
        return None
    if (run.path / name).is_dir():
        raise CheckpointError(f"{run.path / name}: is a folder where a file of the run belongs; move it away")
    try:
        manifest.verify_file(run.path / name, run.manifest.files[name])
    except CheckpointError as error:
        return str(error)
    return None


def _best_weights(session: Session) -> dict[str, Tensor] | None:
    """The weights of the best step from its checkpoint: the moving average where there is one."""
    step = session.counters.best_step
    if step is None or step not in checkpoint.steps(session.run.checkpoints):
        return None
    path = checkpoint.path_of(session.run.checkpoints, step)
    try:
        checkpoint.verify(path)
        saved = saved_tensors(path, checkpoint.read_state(path))
        tensors.require_forms_fit(session.model, saved.weights, saved.metadata, path / checkpoint.MODEL)
        return saved.whole_weights() | saved.whole("average/")
    except CheckpointError:
        return None
