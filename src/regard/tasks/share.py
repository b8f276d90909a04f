"""The share of a half: how much a model with two halves leans on the one that was solved for, by what is held out.

    s = the one of 0, 0.05 .. 1 with the lowest loss of log p = log softmax((1 - s) log p_net + s log p_solved)

A net that has just begun, or has too few texts to learn from, is not listened to; one that is ahead is. Chosen by the
loss and not by how many answers are right, which is a coarse measure of few texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor

SHARES = np.linspace(0, 1, 21)


@runtime_checkable
class Shared(Protocol):
    """A head whose answer has two halves. share: of the one that was solved for, 0 to 1."""

    @property
    def share(self) -> Tensor: ...

    def halves(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """The log-probabilities of the net and of the other half."""
        ...


def settled(head: Shared, halves: Sequence[np.ndarray], labels: np.ndarray) -> float:
    """Set the share by the halves (2, C) of held-out texts, and give the part of these that is then answered right."""
    net, solved = np.stack(halves, 1)
    head.share.fill_(best_share(net, solved, labels))
    return float((mixed(net, solved, float(head.share)).argmax(1) == labels).mean())


def mixed(net: np.ndarray, solved: np.ndarray, share: float) -> np.ndarray:
    """log p (n, C) of the log-probabilities of both halves."""
    found = (1 - share) * net + share * solved
    found -= found.max(1, keepdims=True)
    return found - np.log(np.exp(found).sum(1, keepdims=True))


def best_share(net: np.ndarray, solved: np.ndarray, labels: np.ndarray) -> float:
    """The share with the lowest loss, of the log-probabilities (n, C) of both; of equal ones the largest.

    >>> sure, unsure = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.5, 0.5], [0.5, 0.5]])
    >>> best_share(sure, unsure, np.array([0, 1])), best_share(sure, unsure, np.array([1, 0]))
    (0.0, 1.0)
    """
    rows = np.arange(len(labels))
    return float(min(SHARES[::-1], key=lambda share: -mixed(net, solved, share)[rows, labels].sum()))
