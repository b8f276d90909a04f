"""Evaluation while training: the loss on held-out batches, the best weights so far, and a sample of text.

Without `evaluate_every` a plan is made when a twentieth of the budget is spent: so many evaluations of so many tokens
that all of them take about a twentieth of the time. A forward pass is a third of a training step; ten evaluations make
a curve, as long as each has 2,000 tokens, and there are more of them where each has 20,000. The plan is saved, so that
a resume keeps to it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from regard.core.device import widest
from regard.data.batch import Batch
from regard.errors import NumericError
from regard.storage import disk, tensors
from regard.training import run_folder
from regard.training.display import Evaluation
from regard.training.interrupt import Interrupt
from regard.training.random_streams import seed_step
from regard.training.report import FORWARD_SHARE, read_pending
from regard.training.session import Session

SHARE = 0.05
WORTH_DRAWING, WORTH_COMPARING = 2_000, 20_000
FEWEST, CURVE, MOST = 4, 10, 20


def evaluation_is_due(session: Session) -> bool:
    """Whether this step is one to evaluate at. Called once before every step."""
    count, every = session.counters, session.settings.evaluate_every
    if session.task.held_out is None or count.evaluated_step == count.step:
        return False
    if every is not None:
        return count.step > 0 and count.step % every == 0
    progress = session.progress()
    if count.plan_count is None and progress >= SHARE and count.tokens > 0:
        count.plan_count, count.plan_tokens = plan(count.tokens / progress, session.task.held_out_tokens)
    if count.plan_count is None:
        return False
    return progress < 1 and int(progress * count.plan_count) > count.marks


def plan(budget_tokens: float, held_out_tokens: int) -> tuple[int, int]:
    """How many evaluations, and of how many tokens each.

    >>> plan(1_300_000, 111_000)
    (10, 19500)
    >>> plan(200_000, 54_000)
    (10, 3000)
    """
    affordable = SHARE / FORWARD_SHARE * budget_tokens

    def room(tokens: int) -> int:
        return int(affordable / max(1, min(held_out_tokens, tokens)))

    count = max(FEWEST, min(CURVE, room(WORTH_DRAWING)), min(MOST, room(WORTH_COMPARING)))
    return count, max(1, min(held_out_tokens, int(affordable / count)))


def evaluate(session: Session, interrupt: Interrupt) -> None:
    """Measure the held-out loss, remember the weights when it is the lowest, and let the model write something.

    A signal cuts it short: nothing is recorded and the step is evaluated again when the run goes on.
    """
    read_pending(session)
    count, start = session.counters, time.monotonic()
    with session.ema.in_place(), evaluating(session.model):
        found = session.ranks.at_once(interrupt, lambda: _measure(session))
        if found is None:
            return
        loss, tokens, score, text = found
        is_best = _is_best(session, loss, score)
        if is_best:
            weights = tensors.weights_of(session.model)
            session.best_weights = session.ranks.kept(weights)
    count.marks = int(session.progress() * (count.plan_count or 0))
    count.since_best = 0 if is_best else count.since_best + 1
    if is_best:
        count.best_loss, count.best_score, count.best_step = loss, score, count.step
    count.evaluated_step, count.evaluated_loss, count.evaluations = count.step, loss, count.evaluations + 1
    named = {} if score is None or session.task.metric is None else {session.task.metric.name: score}
    told = {f"valid_{name}": value for name, value in named.items()}
    session.metrics.write({"step": count.step, "seconds": round(session.seconds, 3), "valid_loss": loss, **told})
    best = loss if count.best_loss is None else count.best_loss
    seconds = time.monotonic() - start
    _keep_sample(session, text)
    session.evaluation_seconds = seconds
    session.display.evaluated(
        Evaluation(count.step, loss, best, is_best, tokens, seconds, text, named, count.best_score)
    )
    session.read_at = time.monotonic()


def _measure(session: Session) -> tuple[float, int, float | None, str | None]:
    """Held-out loss, the tokens it is of, the task's score, and a sample. Nothing but what is returned is left."""
    step = session.counters.step
    seed_step(session.settings.seed, step, session.device, "evaluation")
    loss, tokens = held_out_loss(session)
    if not math.isfinite(loss):
        raise NumericError(f"step {step}: the held-out loss is {loss}; lower train.lr and continue with --resume")
    with session.ranks.whole_model():
        score, text = session.ranks.shared((_score(session), _sample(session)))
    return loss, tokens, score, text


@torch.no_grad()
def _score(session: Session) -> float | None:
    """The task's own score of the present weights."""
    metric = session.task.metric
    if metric is None or session.settings.choose_by == "loss":
        return None
    with session.precision():
        return metric.measure(session.model)


def _is_best(session: Session, loss: float, score: float | None) -> bool:
    """By the task's own score where there is one; of equal scores the lower loss."""
    count, metric = session.counters, session.task.metric
    lower = count.best_loss is None or loss < count.best_loss
    if metric is None or score is None:
        return lower
    return metric.is_better(score, count.best_score) or (score == count.best_score and lower)


@torch.no_grad()
def held_out_loss(session: Session) -> tuple[float, int]:
    """Nats a token and how many tokens."""
    assert session.task.held_out is not None
    whole = session.task.held_out_tokens
    enough = session.counters.plan_tokens or whole
    total = torch.zeros((), dtype=widest(session.device), device=session.device)
    tokens, state = 0, None
    # Rows that go on must be read from their beginning.
    batches = session.task.held_out() if session.task.carries else spread(session.task.held_out(), enough, whole)
    for batch in batches:
        own = session.ranks.part(batch)
        if session.task.carries and (batch.fresh or state is None):
            state = session.fresh_state(own.tokens.shape[0])
        with session.precision():
            loss, _, state = session.training_step(own.to(session.device), state)
        if session.ranks.counts(batch):
            total += loss
        tokens += batch.n_counted
        session.ranks.leave_if_heard()
        if session.task.carries and tokens >= enough:
            break
    return float(session.ranks.summed(total)) / max(1, tokens), tokens


def spread(batches: Iterable[Batch], enough: int, whole: int) -> Iterator[Batch]:
    """About `enough` of `whole` tokens, at least one batch, in even distances from the first to the last batch.

    Documents come sorted by length, so that a part from the beginning would be of the longest only.
    """
    seen = taken = 0
    for batch in batches:
        count = batch.n_counted
        seen, enough = seen + count, max(enough, count)
        if taken + count / 2 <= enough / whole * seen:
            taken += count
            yield batch


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model without dropout while the block runs."""
    model.eval()
    try:
        yield
    finally:
        model.train()


def _sample(session: Session) -> str | None:
    every = session.settings.sample_every
    if session.sample is None or every == 0 or session.counters.evaluations % every:
        return None
    return session.sample(session.model)


def _keep_sample(session: Session, text: str | None) -> None:
    if text is None or not session.ranks.is_first:
        return
    session.metrics.trackers.text(session.counters.step, text)
    try:
        entry = f"--- step {session.counters.step}\n{text}\n".encode(errors="replace")
        disk.append(session.run.path / run_folder.SAMPLES, entry)
    except OSError as error:
        session.display.note(f"{session.run.path / run_folder.SAMPLES}: cannot be written: {error.strerror}")
