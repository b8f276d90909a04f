"""Label smoothing by both conventions: epsilon shared by all classes (Szegedy et al. 2016), or by the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from exact import load, same, tensor
from torch import Tensor, nn

from regard.errors import UsageError
from regard.layers.head import LogitsHead
from regard.training.losses import Smoothing, model_loss, smoothed_loss
from tiny_run import Steps

GOLDEN = load("label_smoothing")
both_conventions = pytest.mark.parametrize("smoothing", ["all", "others"])


class Fixed(nn.Module):
    """A model whose logits are given."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits
        self.head = LogitsHead(len(logits))

    def init_state(self, batch_size: int) -> None:
        return None

    def forward(self, tokens: Tensor, state: None, context: Any) -> tuple[Tensor, None]:
        return self.logits.expand(*tokens.shape, -1), state


def convention(smoothing: str) -> dict[str, Any]:
    return GOLDEN[f"convention_{smoothing}_classes" if smoothing == "all" else "convention_other_classes"]


@both_conventions
def test_loss(smoothing: Smoothing) -> None:
    logits, target = tensor([GOLDEN["logits"]]), torch.tensor([GOLDEN["target"]])
    same(logits.softmax(-1)[0], GOLDEN["probabilities"])
    same(smoothed_loss(logits, target, GOLDEN["epsilon"], smoothing), convention(smoothing)["loss"])
    same(smoothed_loss(logits, target, 0.0, smoothing), GOLDEN["no_smoothing_loss"])


@both_conventions
def test_no_prediction_is_better_than_the_smoothed_target_itself(smoothing: Smoothing) -> None:
    golden = convention(smoothing)
    best = tensor([golden["q"]]).log().requires_grad_()
    loss = smoothed_loss(best, torch.tensor([GOLDEN["target"]]), GOLDEN["epsilon"], smoothing)
    same(loss, golden["minimum_possible_loss"])
    [slope] = torch.autograd.grad(loss, best)
    same(slope, torch.zeros_like(best))


@both_conventions
def test_the_objective_smooths_while_training_only(smoothing: Smoothing) -> None:
    model, batch = Fixed(tensor(GOLDEN["logits"])), Steps().batch(0, 1)
    first = torch.zeros(1, 1, dtype=torch.long)
    batch = replace(batch, tokens=first, targets=first + GOLDEN["target"], lengths=torch.ones(1, dtype=torch.long))
    smooth, count, _ = model_loss(model, batch, None, GOLDEN["epsilon"], smoothing)
    assert int(count) == 1
    assert float(smooth) == pytest.approx(convention(smoothing)["loss"], abs=1e-6)
    plain, _, _ = model_loss(model.eval(), batch, None, GOLDEN["epsilon"], smoothing)
    assert float(plain) == pytest.approx(GOLDEN["no_smoothing_loss"], abs=1e-6)


def test_targets_that_do_not_count_are_not_smoothed_either() -> None:
    logits = tensor([GOLDEN["logits"], [3.0, 1.0, 4.0, 1.0, 5.0]])
    for smoothing in ("all", "others"):
        loss = smoothed_loss(logits, torch.tensor([GOLDEN["target"], -100]), GOLDEN["epsilon"], smoothing)
        same(loss, convention(smoothing)["loss"])


def test_more_smoothing_than_there_are_others_is_refused() -> None:
    logits, target = tensor([[0.0, 1.0]]), torch.tensor([1])
    uniform = smoothed_loss(logits, target, 0.5, "others")
    same(uniform, -logits.log_softmax(-1).mean())
    with pytest.raises(UsageError, match=r"train\.label_smoothing: 0\.6 .* 2 classes; lower it"):
        smoothed_loss(logits, target, 0.6, "others")
