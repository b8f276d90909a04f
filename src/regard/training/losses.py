"""What a language model is trained for: the negative log-probability of each next token.

    loss = - sum_t log p(w_(t+1) | w_1 .. w_t)

With label smoothing the target is not one class but a distribution q, and the loss is - sum_k q_k log p_k:

    all     q = epsilon / K for every class and 1 - epsilon more for the target      Szegedy et al. 2016, section 7
    others  q = epsilon / (K - 1) for every other class and 1 - epsilon for the target

Sums and counts are returned apart, so that batches of unequal length can be averaged by token and not by batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.state import State
from regard.data.batch import NOT_COUNTED, Batch
from regard.errors import UsageError
from regard.kernels.cross_entropy import linear_cross_entropy

Smoothing = Literal["all", "others"]


def context_of(batch: Batch) -> Context:
    """The lengths of the rows, left out when every row is full: mixers are faster without them.

    `lengths` stays on the host, where looking at it costs nothing; the tokens may be on a device.
    """
    return Context(lengths=batch.lengths.to(batch.tokens.device)) if batch.ragged else EMPTY


def written_loss(
    model: nn.Module,
    batch: Batch,
    _state: State | None,
    label_smoothing: float = 0.0,
    smoothing: Smoothing = "all",
) -> tuple[Tensor, Tensor, None]:
    """- sum_t log p(y_(t+1) | y_1 .. y_t, x): what is written from a source x, which is read once.

    Every row begins anew, so that no state is taken or given.
    """
    whole: Any = model
    assert batch.source is not None
    lengths = None if batch.source_lengths is None else batch.source_lengths.to(batch.tokens.device)
    memory, memory_lengths = whole.encode(batch.source, lengths)
    context = replace(context_of(batch), memory=memory, memory_lengths=memory_lengths)
    vectors, _ = whole.decoder.hidden(batch.tokens, None, context)
    head, targets = whole.decoder.to_logits, batch.targets.flatten()
    count = (targets != NOT_COUNTED).sum()
    epsilon = _shared_by_all(label_smoothing if model.training else 0.0, smoothing, head.out_features)
    loss = linear_cross_entropy(vectors.flatten(0, 1), head.weight, head.bias, targets, NOT_COUNTED, epsilon)
    return loss, count, None


def class_loss(
    model: nn.Module,
    batch: Batch,
    _state: State | None,
    label_smoothing: float = 0.0,
    smoothing: Smoothing = "all",
) -> tuple[Tensor, Tensor, None]:
    """- sum log p(class | text): of one class for the whole text, or of one at every token."""
    lengths = batch.lengths.to(batch.tokens.device) if batch.ragged else None
    logits = model(batch.tokens, lengths)
    targets = batch.targets.flatten()
    epsilon = label_smoothing if model.training else 0.0
    loss = smoothed_loss(logits.flatten(0, -2).float(), targets, epsilon, smoothing)
    return loss, (targets != NOT_COUNTED).sum(), None


def masked_loss(
    model: nn.Module,
    batch: Batch,
    _state: State | None,
    label_smoothing: float = 0.0,
    smoothing: Smoothing = "all",
) -> tuple[Tensor, Tensor, None]:
    """- sum log p(w_t | the row with w_t hidden) over the hidden positions t; the head is applied there only."""
    whole: Any = model
    hidden = batch.targets != NOT_COUNTED
    targets = batch.targets[hidden]
    vectors = whole.transform(whole.encode(batch.tokens, context_of(batch))[hidden])
    head = whole.to_logits
    count = hidden.sum()
    if label_smoothing > 0 and model.training:
        return smoothed_loss(head(vectors).float(), targets, label_smoothing, smoothing), count, None
    return linear_cross_entropy(vectors, head.weight, head.bias, targets, NOT_COUNTED), count, None


def next_token_loss(
    model: nn.Module,
    batch: Batch,
    state: State | None,
    label_smoothing: float = 0.0,
    smoothing: Smoothing = "all",
) -> tuple[Tensor, Tensor, State | None]:
    """The loss summed over the targets that count, how many these are, and the state after the batch.

    label_smoothing  epsilon, shared out as `smoothing` says; only while training, so that a held-out loss means the
    same with and without it. A model with `hidden` and `to_logits` never has its logits formed whole; any other gives
    them itself.
    """
    context = context_of(batch)
    targets = batch.targets.flatten()
    count = (targets != NOT_COUNTED).sum()
    whole: Any = model
    epsilon = label_smoothing if model.training else 0.0
    if not hasattr(model, "hidden"):
        given = whole.init_state(batch.tokens.shape[0]) if state is None else state
        logits, after = whole(batch.tokens, given, context)
        loss = smoothed_loss(logits.flatten(0, 1).float(), targets, epsilon, smoothing)
        return loss, count, None if state is None else after
    vectors, after = whole.hidden(batch.tokens, state, context)
    head = whole.to_logits
    epsilon = _shared_by_all(epsilon, smoothing, head.out_features)
    loss = linear_cross_entropy(vectors.flatten(0, 1), head.weight, head.bias, targets, NOT_COUNTED, epsilon)
    return loss, count, after


def smoothed_loss(
    logits: Float[Tensor, "N K"], targets: Int[Tensor, "N"], epsilon: float, smoothing: Smoothing = "all"
) -> Tensor:
    """The loss summed over the targets that count, with label smoothing."""
    epsilon = _shared_by_all(epsilon, smoothing, logits.shape[-1])
    return F.cross_entropy(logits, targets, ignore_index=NOT_COUNTED, reduction="sum", label_smoothing=epsilon)


def _shared_by_all(epsilon: float, smoothing: Smoothing, n_classes: int) -> float:
    """The epsilon that, shared by all classes, is the same as `epsilon` by the convention `smoothing`."""
    if smoothing == "all" or epsilon == 0:
        return epsilon
    if epsilon * n_classes > n_classes - 1:
        raise UsageError(
            f"train.label_smoothing: {epsilon} gives a target less than the others of {n_classes} classes; lower it"
        )
    return epsilon * n_classes / (n_classes - 1)


def quantile_loss(model: nn.Module, batch: Batch, _state: State | None) -> tuple[Tensor, Tensor, None]:
    """Pinball loss of a forecast, the mean over its quantiles q:  max(q e, (q - 1) e),  e = value - forecast.

    Values that are NaN do not count.
    """
    whole: Any = model
    found = whole(batch.source, batch.tokens).float()  # (B, H, Q)
    q = torch.tensor(whole.config.quantiles, device=found.device)
    counted = ~batch.targets.isnan()
    error = batch.targets.nan_to_num()[..., None] - found
    loss = torch.maximum(q * error, (q - 1) * error).mean(-1)
    return (loss * counted).sum(), counted.sum(), None
