from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F

from regard.core.context import EMPTY
from regard.core.model import logits_of
from regard.training.losses import context_of, model_loss
from tiny_run import LENGTH, ROWS, Steps, model_of


def test_the_loss_is_the_sum_over_targets_that_count():
    model = model_of("gpt").double()
    batch = Steps().batch(0, ROWS)
    targets = batch.targets.clone()
    targets[0, 3:] = -100
    loss, count, state = model_loss(model, replace(batch, targets=targets), None)
    log_p = F.log_softmax(logits_of(model, batch.tokens), -1)
    expected = sum(-log_p[b, t, targets[b, t]] for b in range(ROWS) for t in range(LENGTH) if targets[b, t] >= 0)
    torch.testing.assert_close(loss, expected)
    assert int(count) == ROWS * LENGTH - (LENGTH - 3)
    assert state is None


def test_a_carried_state_continues_the_row():
    model = model_of("lstm").double()
    batch = Steps().batch(0, ROWS)
    whole, _, _ = model_loss(model, batch, model.init_state(ROWS))
    lengths = torch.full((ROWS,), 3)
    early = replace(batch, tokens=batch.tokens[:, :3], targets=batch.targets[:, :3], lengths=lengths)
    late = replace(batch, tokens=batch.tokens[:, 3:], targets=batch.targets[:, 3:], lengths=lengths + LENGTH - 6)
    first, _, state = model_loss(model, early, model.init_state(ROWS))
    second, _, _ = model_loss(model, late, state)
    torch.testing.assert_close(first + second, whole)


def test_lengths_are_given_only_when_a_row_is_short():
    batch = Steps().batch(0, ROWS)
    assert context_of(batch) is EMPTY
    short = batch.lengths.clone()
    short[1] = 2
    assert context_of(replace(batch, lengths=short)).lengths.tolist() == short.tolist()
