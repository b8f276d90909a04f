"""What a model is trained for: one loss for every shape, which the model's own head knows.

    loss = - sum_t log p(w_(t+1) | w_1 .. w_t)                 tokens, classes and tags: cross-entropy
    loss = sum_h mean_q max(q e, (q - 1) e)                    forecasts: the pinball loss of quantiles

With label smoothing the target is not one class but a distribution q, and the loss is - sum_k q_k log p_k:

    all     q = epsilon / K for every class and 1 - epsilon more for the target      Szegedy et al. 2016, section 7
    others  q = epsilon / (K - 1) for every other class and 1 - epsilon for the target

A language model may pay for large vectors h and for hasty ones (Merity, McCann and Socher 2017):

    loss + n (ar mean h_t^2 + tar mean (h_(t+1) - h_t)^2)      over the n tokens that count and the units of h

Where classes have weights, what a target adds to the loss is multiplied by that of its class.

Sums and counts are returned apart, so that batches of unequal length can be averaged by token and not by batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.device import device_of, wide
from regard.core.inputs import NOT_COUNTED, Inputs, PastKnown, SourceTokens
from regard.core.model import Model, logits_of
from regard.core.state import State
from regard.data.batch import Batch
from regard.data.rows import Rows
from regard.errors import UsageError
from regard.layers.head import LogitsHead

Smoothing = Literal["all", "others"]
ANSWERS_AT_ONCE = 1 << 23  # logits that are in memory at one time


class Loss(NamedTuple):
    """The loss summed over the targets that count, how many they are, and the state after them if one was given."""

    total: Tensor
    n_targets: Tensor
    state: State | None


Objective = Callable[[Model, Batch, State | None], Loss]


class TrainingStep(nn.Module):
    """A model and what it is trained for as one module: what is compiled, wrapped by DDP, or sharded."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, batch: Batch, state: State | None = None) -> Loss:
        return self.objective(cast(Model, self.model), batch, state)


def model_loss(
    model: Model,
    batch: Batch,
    state: State | None = None,
    label_smoothing: float = 0.0,
    smoothing: Smoothing = "all",
    ar: float = 0.0,
    tar: float = 0.0,
    class_weights: Tensor | None = None,
) -> Loss:
    """What the head of `model` says to the targets of a batch.

    label_smoothing  epsilon, shared out as `smoothing` says; only while training, so that a held-out loss means the
                     same with and without it.
    ar, tar          as above; likewise only while training.
    class_weights    of a head whose answers are logits: how much targets of each class count, (C,); likewise.
    """
    vectors, after = model(inputs_of(batch), state, context_of(batch))
    epsilon = shared_by_all(label_smoothing if model.training else 0.0, smoothing, model.head.n_answers)
    counts = counted(batch.targets)
    if class_weights is not None and model.training:
        total = weighted_loss(model.head(vectors), batch.targets, class_weights, epsilon)
    else:
        total = model.head(vectors, batch.targets, epsilon)
    if model.training and (ar or tar):
        total = total + activity(vectors, counts, ar, tar, batch.targets_a_pair)
    return Loss(total, counts.sum(), after)


def weighted_loss(
    logits: Float[Tensor, "... C"], targets: Int[Tensor, "..."], weights: Tensor, epsilon: float
) -> Tensor:
    """The loss of logits summed over the targets that count, each times the weight of its class."""
    rows = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, -2)
    options = {"weight": weights.to(rows), "ignore_index": NOT_COUNTED, "label_smoothing": epsilon}
    return F.cross_entropy(rows, targets.flatten(), reduction="sum", **options)


def activity(
    vectors: Float[Tensor, "B T D"],
    counts: Bool[Tensor, "B T"],
    ar: float,
    tar: float,
    targets_a_pair: float | None = None,
) -> Tensor:
    """n (ar mean h^2 + tar mean (h_(t+1) - h_t)^2) over the n positions that count, in float32 at least.

    targets_a_pair: n for each pair of neighbours, where the rows are a part of those that the means are over.
    """
    h = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    both = pairs_of(counts)
    size = (h.square().mean(-1) * counts).sum()
    change = (h.diff(dim=1).square().mean(-1) * both).sum()
    if targets_a_pair is not None:
        return ar * size + tar * change * targets_a_pair
    return ar * size + tar * (change / both.sum().clamp(min=1)) * counts.sum()


def inputs_of(batch: Batch) -> Inputs:
    """What a model reads of a batch."""
    if batch.source is None:
        return batch.tokens
    if batch.tokens.is_floating_point():
        return PastKnown(batch.source, batch.tokens)
    lengths = None if batch.source_lengths is None else batch.source_lengths.to(batch.tokens.device)
    return SourceTokens(batch.source, batch.tokens, lengths)


def context_of(batch: Batch) -> Context:
    """The lengths of the rows, left out when every row is full: mixers are faster without them; or where rows that lie
    end to end begin.

    `lengths` stays on the host, where looking at it costs nothing; the tokens may be on a device.
    """
    if batch.packed:
        return Context(offsets=batch.offsets)
    return Context(lengths=batch.lengths.to(batch.tokens.device)) if batch.ragged else EMPTY


def counted(targets: Tensor) -> Tensor:
    """Which targets count."""
    return ~targets.isnan() if targets.is_floating_point() else targets != NOT_COUNTED


def pairs_of(counts: Tensor) -> Tensor:
    """Which targets count together with the one before them, (B, T - 1)."""
    return counts[:, 1:] & counts[:, :-1]


def smoothed_loss(
    logits: Float[Tensor, "N K"], targets: Int[Tensor, "N"], epsilon: float, smoothing: Smoothing = "all"
) -> Tensor:
    """The loss of given logits, summed over the targets that count."""
    n_classes = logits.shape[-1]
    return LogitsHead(n_classes)(logits, targets, shared_by_all(epsilon, smoothing, n_classes))


def shared_by_all(epsilon: float, smoothing: Smoothing, n_classes: int) -> float:
    """The epsilon that, shared by all classes, is the same as `epsilon` by the convention `smoothing`."""
    if smoothing == "all" or epsilon == 0:
        return epsilon
    if epsilon * n_classes > n_classes - 1:
        raise UsageError(
            f"train.label_smoothing: {epsilon} gives a target less than the others of {n_classes} classes; lower it"
        )
    return epsilon * n_classes / (n_classes - 1)


@torch.no_grad()
def loss_of(model: nn.Module, rows: Rows) -> float:
    """The mean loss of the targets of rows by the answers of any model, in nats; infinite where one cannot be."""
    total, count = 0.0, 0
    whole: Any = model
    longest = int(np.max(rows.sizes, initial=0)) + 1
    at_once = max(1, ANSWERS_AT_ONCE // (longest * whole.vocab_size))
    for first in range(0, len(rows.sizes), at_once):
        numbers = np.arange(first, min(first + at_once, len(rows.sizes)))
        batch = rows.batch_of(numbers, numbers).to(device_of(model))
        logits = logits_of(model, inputs_of(batch), context=context_of(batch))
        log_p = wide(logits).log_softmax(-1)
        counts = counted(batch.targets)
        chosen = log_p.gather(-1, batch.targets.clamp(min=0)[..., None])[..., 0][counts]
        total, count = total - float(chosen.sum()), count + int(counts.sum())
    return total / max(1, count)
