from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from regard.core.context import EMPTY
from regard.core.inputs import NOT_COUNTED
from regard.core.model import logits_of
from regard.data.batch import Batch
from regard.layers.head import LinearHead
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


class _Given(torch.nn.Module):
    """A model that answers with vectors it was given, so that a penalty on them can be worked out by hand."""

    def __init__(self, vectors: torch.Tensor) -> None:
        super().__init__()
        self.vectors, self.head = vectors, LinearHead(vectors.shape[-1], 3).double()

    def forward(self, tokens: torch.Tensor, state: object, context: object) -> tuple[torch.Tensor, None]:
        return self.vectors, None


def test_large_and_hasty_vectors_are_paid_for_while_training_alone():
    torch.manual_seed(0)
    model = _Given(torch.randn(2, 4, 5, dtype=torch.float64))
    targets = torch.tensor([[0, 1, 2, 0], [1, 2, NOT_COUNTED, NOT_COUNTED]])
    batch = Batch(torch.zeros(2, 4, dtype=torch.long), targets, torch.tensor([4, 2]), [0, 1])
    plain = model_loss(model, batch).total
    found = model_loss(model, batch, ar=2.0, tar=3.0).total
    real = [(row, t) for row, length in enumerate((4, 2)) for t in range(length)]
    pairs = [(row, t) for row, length in enumerate((4, 2)) for t in range(length - 1)]
    h = model.vectors.numpy()
    size = sum(float(value) ** 2 for at in real for value in h[at]) / (len(real) * 5)
    change = sum(float(b - a) ** 2 for row, t in pairs for a, b in zip(h[row, t], h[row, t + 1], strict=True))
    expected = len(real) * (2.0 * size + 3.0 * change / (len(pairs) * 5))
    assert float(found - plain) == pytest.approx(expected, rel=1e-12)
    model.eval()
    assert torch.equal(model_loss(model, batch, ar=2.0, tar=3.0).total, plain)
