"""A bare training loop for experiments on bare modules: AdamW or Muon, warm-up, cosine, no files; and probes for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.core.context import EMPTY, Context
from regard.core.model import logits_of
from regard.core.registry import build, entry
from regard.data.batch import NOT_COUNTED
from regard.data.worlds.grammar import END
from regard.data.worlds.probe import Probe
from regard.studies.claims.study import Lab
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


class LinearProbe(nn.Module):
    """A linear map of given vectors to the logits of classes, which is fitted and asked as a model is."""

    def __init__(self, width: int, classes: int, *, is_normed: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width) if is_normed else nn.Identity()
        self.head = nn.Linear(width, classes)

    def forward(self, vectors: Tensor, state: None = None, context: Context = EMPTY) -> tuple[Tensor, None]:
        return self.norm(vectors), None


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


class Rows:
    """Documents of a probe as inputs (B, T) and targets (B, T), which are NOT_COUNTED where nothing is asked for.

    The training part is drawn once and gone through again and again.
    """

    def __init__(self, world: Probe, lab: Lab) -> None:
        self.index = {word: i for i, word in enumerate([END, *world.vocabulary])}
        self.vocab_size = len(self.index)
        self.world, self.device = world, lab.device
        self.train = self._encoded(world.documents("train", seed=lab.seed))
        self.valid = self._encoded(world.documents("valid", seed=lab.seed))

    def batches(self, rows: int) -> Batches:
        """A step's number to its rows."""
        inputs, targets = self.train

        def batch(step: int) -> tuple[Tensor, Tensor]:
            chosen = torch.randint(len(inputs), (rows,), generator=torch.Generator().manual_seed(step))
            chosen = chosen.to(inputs.device)
            return inputs[chosen], targets[chosen]

        return batch

    def _encoded(self, documents: Sequence[str]) -> tuple[Tensor, Tensor]:
        split = [self.world.split(document) for document in documents]
        longest = max(map(len, split))
        inputs = torch.zeros(len(split), longest, dtype=torch.long)
        targets = torch.full((len(split), longest), NOT_COUNTED)
        for row, (words, document) in enumerate(zip(split, documents, strict=True)):
            ids = torch.tensor([self.index[word] for word in words])
            # Inputs begin with the end symbol, so that place i of the targets is asked at place i of the inputs.
            inputs[row, 1 : len(ids)] = ids[:-1]
            asked = [place for place, _ in self.world.recall_points(document)]
            targets[row, asked] = ids[asked]
        return inputs.to(self.device), targets.to(self.device)


def trained(
    rows: Rows,
    model: str,
    lab: Lab,
    steps: int,
    sizes: Mapping[str, Any],
    lr: float | None = None,
) -> nn.Module:
    """A registered model fitted to what the rows ask for, by the optimiser and at the rate that suit it."""
    return fitted(model, rows.vocab_size, rows.batches(32), lab, steps, sizes, lr)


def fitted(
    model: str,
    vocab_size: int,
    batches: Batches,
    lab: Lab,
    steps: int,
    sizes: Mapping[str, Any],
    lr: float | None = None,
) -> nn.Module:
    """The same for batches of any kind."""
    torch.manual_seed(lab.seed)
    found = build(model, vocab_size=vocab_size, size="tiny", **sizes).to(lab.device)
    own = entry(model).training
    fit(found, batches, steps, lr or own["lr"], optimiser=own.get("optimiser", "adamw"))
    return found


def right(model: nn.Module, part: tuple[Tensor, Tensor]) -> float:
    """The share of what is asked for that is answered rightly, in parts small enough for long rows."""
    inputs, targets = part
    counted = [(targets[i : i + 64] != NOT_COUNTED).sum().item() for i in range(0, len(inputs), 64)]
    shares = [accuracy(model, inputs[i : i + 64], targets[i : i + 64]) for i in range(0, len(inputs), 64)]
    return sum(share * count for share, count in zip(shares, counted, strict=True)) / sum(counted)
