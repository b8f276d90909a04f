"""The training loop, one for all models and tasks. It reads from top to bottom.

    evaluate when it is time, save when it is time, stop when asked or when the budget is spent, else make a step

A step reads its batches by number, seeds chance by number and takes its rate from the budget's progress, so that a
resume at step k does what the undisturbed run did at step k, bit for bit (same machine, versions and threads; a budget
in time is as repeatable as the clock).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.core.device import device_named, move
from regard.core.stack import outer_blocks
from regard.errors import ResourceError, Stopped, UsageError, is_out_of_memory
from regard.training.display import Display, Result, Silent, Start
from regard.training.ema import Ema
from regard.training.execution import as_chosen, settle
from regard.training.held_out import evaluate, evaluation_is_due
from regard.training.interrupt import Interrupt
from regard.training.losses import TrainingStep
from regard.training.metrics import Metrics
from regard.training.optimiser import Optimiser
from regard.training.parallel.ranks import ALONE, Ranks
from regard.training.precision import precision_of, products_in
from regard.training.problem import TrainingProblem
from regard.training.random_streams import seed_step
from regard.training.report import read_is_due, read_pending
from regard.training.resume import Resume, start_or_resume, take_back
from regard.training.run_folder import METRICS, RunFolder
from regard.training.saving import awaited, conclude, is_under_way, save, save_is_due
from regard.training.schedule import factor
from regard.training.session import Session
from regard.training.settings import TrainSettings
from regard.training.step import make_step
from regard.training.track import tracking


def train(
    model: nn.Module,
    task: TrainingProblem,
    settings: TrainSettings,
    path: Path,
    *,
    about: Mapping[str, Any] | None = None,
    display: Display | None = None,
    sample: Callable[[nn.Module], str] | None = None,
    resume: Resume | None = None,
    ranks: Ranks = ALONE,
) -> Result:
    """Train `model` until the budget is spent and leave a run folder at `path`.

    about   what config.json should say beside what is known here, such as {"model": {"name": "gpt", "size": "small"}}.
    sample  what the model writes at an evaluation: called with the model, without dropout, best with a seed of its own.
    ranks   the processes that train it together, each of which calls this with the same.
    The model ends with the last weights; the folder's model.safetensors are the best. The global generators
    of Python, numpy and torch are seeded at every step.
    """
    display = ranks.display(Silent() if display is None else display)
    result = None
    with Interrupt() as interrupt, ranks.claim(path) as run, memory_reported(settings, run, ranks):
        try:
            session = new_session(model, task, settings, run, display, ranks)
            session.sample = sample
            done = start_or_resume(session, about or {}, resume or Resume())
            if done is None:
                with session.metrics.trackers.run(run.config()):
                    result = _made(session, interrupt)
            else:
                result = _result(session, done)
            return result
        finally:
            display.finish(result)


def _made(session: Session, interrupt: Interrupt) -> Result:
    """Choose how steps are made here, and make them so."""
    try:
        settle(session)
        with as_chosen(session), awaited(session):
            return _run(session, interrupt)
    finally:
        session.prefetch.close()


def _run(session: Session, interrupt: Interrupt) -> Result:
    """Evaluate, save, stop or step, until there is a reason to end."""
    session.start_clock()
    session.model.train()
    _tell_start(session)
    reason = None
    while reason is None:
        if not session.ranks.meet(interrupt, is_under_way(session)):
            conclude(session)
        if evaluation_is_due(session):
            evaluate(session, interrupt)
        if save_is_due(session):
            save(session)
        if signal := session.ranks.heard(interrupt):
            _stop(session, signal)
        reason = session.reason_to_end()
        if reason is None:
            _step(session)
    if session.task.held_out is not None and session.counters.evaluated_step != session.counters.step:
        evaluate(session, interrupt)
    save(session, last=True)
    session.ranks.meet(interrupt)
    if signal := session.ranks.heard(interrupt):
        _stop(session, signal)
    return _end(session, reason)


def _step(session: Session) -> None:
    """One update of the weights from `accumulate` batches, each weighted by its tokens."""
    settings, count = session.settings, session.counters
    seed_step(settings.seed, count.step, session.device, session.ranks.stream("step"))
    loaded = session.prefetch.take(count.step)
    session.rate = _rate(session, loaded.tokens)
    pending = make_step(session, loaded)
    session.ema.update(count.step)
    count.step += 1
    count.tokens += pending.tokens
    count.places += loaded.places
    count.padding += loaded.padding
    session.steps_here += 1
    session.pending.append(pending)
    if read_is_due(session):
        read_pending(session)


def _rate(session: Session, tokens: int) -> float:
    """The learning rate of the coming step, taken at its middle."""
    settings = session.settings
    progress = session.progress(ahead_steps=0.5, ahead_tokens=tokens / 2)
    scale = factor(
        settings.schedule,
        step=session.counters.step,
        progress=progress,
        warmup=settings.warmup,
        floor=settings.min_lr,
    )
    return settings.rate * scale


def _stop(session: Session, signal: str) -> None:
    save(session, last=True)
    raise Stopped(
        f"{session.run.path}: stopped by {signal} at step {session.counters.step}, with a checkpoint; "
        f"continue with --resume"
    )


def _end(session: Session, reason: str) -> Result:
    count = session.counters
    count.seconds = session.seconds
    facts = {"step": count.step, "best_step": count.best_step, "best_loss": count.best_loss, "reason": reason}
    session.ranks.first(lambda: session.run.close_logs(facts))
    return _result(session, reason)


def _result(session: Session, reason: str) -> Result:
    count = session.counters
    return Result(
        folder=session.run.path,
        step=count.step,
        tokens=count.tokens,
        seconds=count.seconds,
        train_loss=session.train_loss,
        valid_loss=count.evaluated_loss,
        best_loss=count.best_loss,
        best_step=count.best_step,
        reason=reason,
        best_score=count.best_score,
        choice=session.choice.to_dict(),
        padding=count.padding_share,
    )


def new_session(
    model: nn.Module,
    task: TrainingProblem,
    settings: TrainSettings,
    run: RunFolder,
    display: Display,
    ranks: Ranks = ALONE,
) -> Session:
    """A run in memory that has made no step."""
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    ranks.require_rows(settings.batch_size)
    device = ranks.device(device_named(settings.device))
    products = products_in(precision_of(settings.precision, device))
    move(model, device)
    blocks = outer_blocks(model)
    if settings.gradient_checkpointing and not blocks:
        raise UsageError("train.gradient_checkpointing: the model has no layers to compute a second time; say false")
    for block in blocks:
        block.recomputes = settings.gradient_checkpointing
    training_step = TrainingStep(model, task.objective)
    ranks.shard(training_step, products)
    trackers = tracking(settings.track, run.path, display.note) if ranks.is_first else None
    metrics = Metrics(run.path / METRICS if ranks.is_first else None, display.note, trackers)
    optimiser, ema = Optimiser(model, settings, ranks), Ema(model, settings.ema, ranks)
    return Session(training_step, task, settings, run, display, metrics, optimiser, ema, device, ranks)


@contextmanager
def memory_reported(settings: TrainSettings, run: RunFolder, ranks: Ranks = ALONE) -> Iterator[None]:
    """Turn the several ways in which memory runs out into one line whose advice can be followed in the same folder.

    The sizes of a step are part of what a run is. One that has no checkpoint yet is therefore taken back, so that the
    same command with smaller ones begins it anew.
    """
    try:
        yield
    except (RuntimeError, MemoryError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        sizes = f"train.batch_size={settings.batch_size} and train.length={settings.length}"
        advice = "lower one of them (train.accumulate keeps the size of a step) or choose a smaller --size"
        if not (ranks.is_first and take_back(run)):
            advice = f"continue with --resume where there is more; or {advice}, with another --out"
        raise ResourceError(f"out of memory with {sizes}; {advice}") from error


def _tell_start(session: Session) -> None:
    parameters = sum(parameter.numel() for parameter in session.model.parameters())
    session.display.start(
        Start(
            session.run.path,
            session.settings.budget,
            parameters,
            str(session.device),
            session.counters.step,
            session.progress(),
            session.task.unit,
            session.choice.told,
        )
    )
