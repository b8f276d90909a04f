from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F

from regard.core.context import EMPTY
from regard.training.objective import context_of, next_token_loss
from tiny_run import LENGTH, ROWS, Steps, model_of

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "label_smoothing.json").read_text())


class Fixed(torch.nn.Module):
    """A model whose logits are given."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)

    def init_state(self, batch_size: int) -> None:
        return None

    def forward(self, tokens, state, context):
        return self.logits.expand(*tokens.shape, -1), state


def one_token(target: int):
    batch = Steps().batch(0, 1)
    first = torch.zeros(1, 1, dtype=torch.long)
    return replace(batch, tokens=first, targets=first + target, lengths=torch.ones(1, dtype=torch.long))


def test_label_smoothing_is_the_golden_number():
    model = Fixed(GOLDEN["logits"])
    plain, count, _ = next_token_loss(model, one_token(GOLDEN["target"]), None)
    smooth, _, _ = next_token_loss(model, one_token(GOLDEN["target"]), None, GOLDEN["epsilon"])
    assert int(count) == 1
    assert abs(float(plain) - GOLDEN["no_smoothing_loss"]) < 1e-6
    assert abs(float(smooth) - GOLDEN["convention_all_classes"]["loss"]) < 1e-6


def test_the_loss_is_the_sum_over_targets_that_count():
    model = model_of("gpt").double()
    batch = Steps().batch(0, ROWS)
    targets = batch.targets.clone()
    targets[0, 3:] = -100
    loss, count, state = next_token_loss(model, replace(batch, targets=targets), None)
    log_p = F.log_softmax(model(batch.tokens), -1)
    expected = sum(-log_p[b, t, targets[b, t]] for b in range(ROWS) for t in range(LENGTH) if targets[b, t] >= 0)
    torch.testing.assert_close(loss, expected)
    assert int(count) == ROWS * LENGTH - (LENGTH - 3)
    assert state is None


def test_a_carried_state_continues_the_row():
    model = model_of("lstm").double()
    batch = Steps().batch(0, ROWS)
    whole, _, _ = next_token_loss(model, batch, model.init_state(ROWS))
    lengths = torch.full((ROWS,), 3)
    early = replace(batch, tokens=batch.tokens[:, :3], targets=batch.targets[:, :3], lengths=lengths)
    late = replace(batch, tokens=batch.tokens[:, 3:], targets=batch.targets[:, 3:], lengths=lengths + LENGTH - 6)
    first, _, state = next_token_loss(model, early, model.init_state(ROWS))
    second, _, _ = next_token_loss(model, late, state)
    torch.testing.assert_close(first + second, whole)


def test_lengths_are_given_only_when_a_row_is_short():
    batch = Steps().batch(0, ROWS)
    assert context_of(batch) is EMPTY
    short = batch.lengths.clone()
    short[1] = 2
    assert context_of(replace(batch, lengths=short)).lengths.tolist() == short.tolist()
