"""What a language model is trained for: the negative log-probability of each next token.

    loss = - sum_t log p(w_(t+1) | w_1 .. w_t)

Sums and counts are returned apart, so that batches of unequal length can be averaged by token and not by batch.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.state import State
from regard.data.batch import NOT_COUNTED, Batch
from regard.kernels.cross_entropy import linear_cross_entropy


def context_of(batch: Batch) -> Context:
    """The lengths of the rows, left out when every row is full: mixers are faster without them.

    `lengths` stays on the host, where looking at it costs nothing; the tokens may be on a device.
    """
    return Context(lengths=batch.lengths.to(batch.tokens.device)) if batch.ragged else EMPTY


def next_token_loss(
    model: nn.Module, batch: Batch, state: State | None, label_smoothing: float = 0.0
) -> tuple[Tensor, Tensor, State | None]:
    """The loss summed over the targets that count, how many these are, and the state after the batch.

    label_smoothing  gives every class that part of the target's weight, divided by their number (Szegedy et al. 2016);
    only while training, so that a held-out loss means the same with and without it. Without it, a model with `hidden`
    and `to_logits` never has its logits formed whole; any other gives them itself.
    """
    context = context_of(batch)
    targets = batch.targets.flatten()
    count = (targets != NOT_COUNTED).sum()
    whole: Any = model
    smoothing = label_smoothing if model.training else 0.0
    if not hasattr(model, "hidden") or smoothing > 0:
        given = whole.init_state(batch.tokens.shape[0]) if state is None else state
        logits, after = whole(batch.tokens, given, context)
        flat = logits.flatten(0, 1).float()
        loss = F.cross_entropy(flat, targets, ignore_index=NOT_COUNTED, reduction="sum", label_smoothing=smoothing)
        return loss, count, None if state is None else after
    vectors, after = whole.hidden(batch.tokens, state, context)
    head = whole.to_logits
    return linear_cross_entropy(vectors.flatten(0, 1), head.weight, head.bias, targets, NOT_COUNTED), count, after
