"""Outcome: what a model says at one place of what it reads, and which of its answers counts there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.explain.look import numbers, place_of
from regard.tasks.filling import MASK
from regard.tasks.reading import END, Reading, Side


@dataclass(frozen=True)
class Outcome:
    """place      whose answer it is, by its index; None where one answer stands for the whole.
    answer     its number among the outputs: what came, where that is known, else the most probable one.
    name       of the answer.
    came       whether it is what came.
    log_probs  (V,) of every answer.
    """

    place: int | None
    answer: int
    name: str
    came: bool
    log_probs: Tensor

    @property
    def log_prob(self) -> float:
        return float(self.log_probs[self.answer])

    @property
    def told(self) -> str:
        """The answer in words."""
        return f"{self.name!r}, {'which came' if self.came else 'the most probable answer'}"


def outcome(reading: Reading, position: int | None = None) -> Outcome:
    """What is said at a position, as `numbers` counts them.

    When none is asked for: at the first mask, or at the last position that is no end of a text.
    """
    outputs = reading.run()
    place = None
    if outputs.dim() == 3:
        place = _own_choice(reading.main) if position is None else place_of(reading.main, position)
    log_probs = log_probs_at(outputs, place)[0]
    target = reading.targets[place] if reading.targets and place is not None else None
    answer = int(log_probs.argmax()) if target is None else target
    return Outcome(place, answer, reading.named(answer), target is not None, log_probs)


def log_probs_at(outputs: Tensor, place: int | None) -> Tensor:
    """log p (B, V) of the answers at a place, of outputs (B, T, V), or (B, V) where one stands for the whole."""
    logits = outputs if outputs.dim() == 2 else outputs[:, -1 if place is None else place]
    return _fine(logits).log_softmax(-1)


def number_of(reading: Reading, place: int | None) -> int | None:
    """What the position at an index is called."""
    return None if place is None else numbers(reading.main)[place]


def _own_choice(side: Side) -> int:
    if MASK in side.labels:
        return side.labels.index(MASK)
    words = [place for place, label in enumerate(side.labels) if label != END]
    return words[-1] if words else len(side) - 1


def _fine(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()
