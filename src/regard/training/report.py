"""Reading the numbers of the last steps: here they are checked, logged and shown.

On a GPU a number is read only now and then, because reading waits for all work in the queue. Nothing is lost by that:
a step whose numbers are not finite, and every one after it, leaves the weights as they were (see `Optimiser.step`).
"""

from __future__ import annotations

import math
import time

import torch
from torch import nn

from regard.errors import NumericError
from regard.training.display import Update
from regard.training.session import Pending, Session

INTERVAL = 0.5
SAMPLES_SHOWN = 64
FORWARD_SHARE = 1 / 3  # of a training step's time


def read_is_due(session: Session) -> bool:
    return time.monotonic() - session.read_at >= INTERVAL


def read_pending(session: Session) -> None:
    """Look at the steps since the last look: refuse numbers that are not finite, log and show the means."""
    pending, now = session.pending, time.monotonic()
    if not pending:
        session.read_at = now
        return
    losses = torch.stack([one.loss for one in pending]).tolist()
    norms = torch.stack([one.norm for one in pending]).tolist()
    if session.loss_scale is None or bool(session.is_bad):
        for one, loss, norm in zip(pending, losses, norms, strict=True):
            require_finite(one, loss, norm)
    speed_tokens = sum(one.tokens for one in pending)
    # Steps that overflowed under a scaled loss were left out, and are left out here.
    made = [numbers for numbers in zip(pending, losses, norms, strict=True) if math.isfinite(sum(numbers[1:]))]
    if not made:
        session.pending, session.read_at = [], time.monotonic()
        return
    pending, losses, norms = (list(part) for part in zip(*made, strict=True))
    tokens = sum(one.tokens for one in pending)
    session.train_loss = sum(loss * one.tokens for loss, one in zip(losses, pending, strict=True)) / max(1, tokens)
    # On a GPU the queue was emptied by the reading, so the time is read after it.
    now = time.monotonic()
    update = _update(session, speed_tokens / max(1e-9, now - session.read_at), sum(norms) / len(norms))
    session.pending, session.read_at = [], now
    session.metrics.write(
        {
            "step": update.step,
            "seconds": round(update.seconds, 3),
            "tokens": update.tokens,
            "loss": update.loss,
            "gradient_norm": update.gradient_norm,
            "rate": update.rate,
            "tokens_per_second": round(update.tokens_per_second, 1),
            "padding": round(session.counters.padding_share, 5),
        }
    )
    session.display.update(update)


def require_finite(one: Pending, loss: float, norm: float, model: nn.Module | None = None) -> None:
    """Refuse a loss or gradient that is not finite, before it is applied, naming the step and its samples."""
    if math.isfinite(loss) and math.isfinite(norm):
        return
    shown = ", ".join(map(str, one.samples[:SAMPLES_SHOWN])) + (", ..." if len(one.samples) > SAMPLES_SHOWN else "")
    raise NumericError(
        f"step {one.step}: the loss is {loss} and the norm of the gradient {norm}{_first_bad(model)}, samples {shown}; "
        f"the step was not applied and the last checkpoint is untouched; lower train.lr or look at these samples"
    )


def _first_bad(model: nn.Module | None) -> str:
    for name, parameter in model.named_parameters() if model is not None else ():
        if parameter.grad is not None and not bool(torch.isfinite(parameter.grad).all()):
            return f" (first in {name})"
    return ""


def _update(session: Session, speed: float, norm: float) -> Update:
    progress, seconds = session.progress(), session.seconds
    return Update(
        step=session.counters.step,
        progress=progress,
        seconds=seconds,
        remaining=seconds * (1 - progress) / max(1e-9, progress) + _last_evaluation(session, speed),
        tokens=session.counters.tokens,
        tokens_per_second=speed,
        loss=session.train_loss or 0.0,
        gradient_norm=norm,
        rate=session.rate,
    )


def _last_evaluation(session: Session, speed: float) -> float:
    """Seconds that the evaluation after the last step will take: as long as the last one, or by the speed of steps."""
    if session.task.held_out is None:
        return 0.0
    tokens = session.counters.plan_tokens or session.task.held_out_tokens
    return session.evaluation_seconds or FORWARD_SHARE * tokens / max(1e-9, speed)
