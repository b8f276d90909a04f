"""A bare training loop for experiments on bare modules: AdamW or Muon, warm-up, cosine, no files."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.core.model import logits_of
from regard.data.batch import NOT_COUNTED
from regard.training.optimiser import Optimiser
from regard.training.settings import TrainSettings

# A step's number to (inputs, targets); targets of NOT_COUNTED are left out.
Batches = Callable[[int], tuple[Tensor, Tensor]]
WARMUP = 0.05


def fit(
    model: nn.Module,
    batches: Batches,
    steps: int,
    lr: float,
    weight_decay: float = 0.0,
    optimiser: Literal["adamw", "muon"] = "adamw",
) -> list[float]:
    """Train a model by the cross-entropy of its logits, and give back the loss of every step."""
    settings = TrainSettings(optimiser=optimiser, weight_decay=weight_decay, betas=(0.9, 0.999))
    rule = Optimiser(model, settings)
    losses = []
    model.train()
    for step in range(steps):
        inputs, targets = batches(step)
        logits = logits_of(model, inputs)
        loss = cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=NOT_COUNTED)
        rule.clear()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rule.step(lr * _rate(step / steps))
        losses.append(loss.detach())
    model.eval()
    return torch.stack(losses).tolist() if losses else []


@torch.no_grad()
def accuracy(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """The share of counted targets that are the most probable ones."""
    counted = targets != NOT_COUNTED
    right = (logits_of(model, inputs).argmax(-1) == targets) & counted
    return float(right.sum() / counted.sum())


def _rate(progress: float) -> float:
    """The share of the rate after so much of the training."""
    if progress < WARMUP:
        return progress / WARMUP + 1e-3
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
