"""Models on probe worlds: rows of tokens in which only what is asked for counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.registry import build, entry
from regard.data.batch import NOT_COUNTED
from regard.data.worlds.grammar import END
from regard.data.worlds.probe import Probe
from regard.studies.claims.fitting import Batches, accuracy, fit
from regard.studies.claims.study import Lab


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
