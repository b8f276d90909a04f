"""One update of the weights: forward and backward passes, the norm, clipping, the rule of the optimiser.

`update` is how it reads. On a GPU the same code may be captured once as one graph of the device (training/captured.py);
nothing in it then waits for the device or asks it anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.errors import is_out_of_memory
from regard.training.captured import CapturedStep
from regard.training.execution import fall_back
from regard.training.prefetch import Loaded
from regard.training.random_streams import seed_step
from regard.training.report import require_finite
from regard.training.session import Pending, Session

# Steps made as they read before one is captured: they load kernels, and leave the caches of libraries filled.
WARM_UPS = 3


def make_step(session: Session, loaded: Loaded) -> Pending:
    """One update from the batches of a step, in the way that was chosen."""
    loaded.wait()
    loss, norm = _captured(session, loaded) or update(session, loaded.batches, *_numbers(session, loaded), loaded)
    return Pending(session.counters.step + 1, loss, norm, loaded.tokens, loaded.samples)


def update(
    session: Session, batches: Sequence[Batch], tokens: Tensor | int, rate: Tensor | float, loaded: Loaded
) -> tuple[Tensor, Tensor]:
    """The loss of the batches and the norm of its gradient, which is applied unless it is not finite."""
    loss = session.ranks.summed(gradients_of(session, batches, tokens))
    gradients = [parameter.grad for parameter in session.optimiser.parameters if parameter.grad is not None]
    if session.loss_scale is not None:
        session.loss_scale.unscale([session.ranks.local(gradient) for gradient in gradients])
    norm = session.ranks.norm(gradients)
    skip = refuse_or_skip(session, Pending(session.counters.step + 1, loss, norm, loaded.tokens, loaded.samples))
    if session.settings.clip:
        session.ranks.clip(session.optimiser.parameters, session.settings.clip, norm)
    session.optimiser.step(rate, skip)
    session.optimiser.clear()
    return loss, norm


def refuse_or_skip(session: Session, pending: Pending) -> Tensor | None:
    """Stop now when a number is not finite or, where looking would wait for the device, mark the step as not to apply.

    The mark stays: when it is read, the weights are still those before the first bad step. Where the loss is scaled, a
    step may overflow and is left out alone; the mark is for a scale that has become too small to be the reason.
    """
    if session.device.type == "cpu" and session.loss_scale is None:
        require_finite(pending, float(pending.loss), float(pending.norm), session.model)
        return None
    bad = ~torch.isfinite(pending.loss + pending.norm)
    if session.loss_scale is None:
        return session.is_bad.logical_or_(bad)
    session.is_bad.logical_or_(session.loss_scale.update(bad))
    return session.is_bad | bad


def _numbers(session: Session, loaded: Loaded) -> tuple[Tensor | int, Tensor | float]:
    """Count of targets and learning rate; on a GPU as tensors, which a captured step reads anew each time."""
    tokens = max(1, loaded.tokens)
    if session.device.type == "cpu":
        return tokens, session.rate
    # `fill_` passes its number with the kernel, where a copy from the host would wait for all work in the queue.
    return session.given["tokens"].fill_(tokens), session.given["rate"].fill_(session.rate)


def gradients_of(session: Session, batches: Sequence[Batch], tokens: Tensor | int) -> Tensor:
    """Add up the gradients of all batches; the loss of the rows read here is returned.

    What fails as compiled is made as it reads.
    """
    before = session.carried
    # Asked before: of a capture that has failed it cannot be asked any more.
    is_captured = session.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
    try:
        return _added_up(session, batches, tokens)
    except Exception as error:
        alone = session.ranks.size == 1
        if not session.choice.compile or not alone or is_captured or is_out_of_memory(error):
            raise
        fall_back(session, "compile", error)
    session.carried = before
    session.optimiser.clear()
    seed_step(session.settings.seed, session.counters.step, session.device, session.ranks.stream("step"))
    return _added_up(session, batches, tokens)


def _added_up(session: Session, batches: Sequence[Batch], tokens: Tensor | int) -> Tensor:
    last = len(batches) - 1
    parts = list[Tensor]()
    for number, batch in enumerate(batches):
        with session.ranks.adding(session.fast_step, last=number == last):
            parts.append(_backward(session, batch, tokens))
    return torch.stack(parts).sum()


def _backward(session: Session, batch: Batch, tokens: Tensor | int) -> Tensor:
    """Add the gradient of one batch's part of the mean loss; the part itself is returned."""
    state = None
    if session.task.carries:
        is_new = batch.fresh or session.carried is None
        state = session.fresh_state(batch.tokens.shape[0]) if is_new else session.carried
    with session.precision():
        total, _, state = session.fast_step(batch, state)
        loss = total / tokens
    whole = session.ranks.scaled(loss)
    (whole if session.loss_scale is None else session.loss_scale.scaled(whole)).backward()
    session.carried = None if state is None else state.detach()
    return loss.detach()


def _captured(session: Session, loaded: Loaded) -> tuple[Tensor, Tensor] | None:
    """What the captured graph of a step gives; None where the step is to be made as it reads."""
    if not session.choice.graphs or session.steps_here < WARM_UPS:
        return None
    if session.captured is None:
        session.prefetch.rest()
        numbers = _numbers(session, loaded)
        try:
            session.captured = CapturedStep(session, loaded, lambda batches: update(session, batches, *numbers, loaded))
        except Exception as error:
            fall_back(session, "graphs", error)
            session.optimiser.clear()
            seed_step(session.settings.seed, session.counters.step, session.device)
            return None
    if not session.captured.takes(loaded):
        return None
    _numbers(session, loaded)
    return session.captured(session, loaded)
