"""Heads: from the vectors of a model to its answers, and to the loss of answers without forming them all.

    logits_t = W f(h_t) + b          LinearHead: tokens, classes, tags; f a small net or nothing

Every head is called in both ways, so that whatever listens to modules meets it in training too.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.inputs import NOT_COUNTED
from regard.kernels.cross_entropy import linear_cross_entropy
from regard.kernels.packed import PackedLinear
from regard.layers.linear import to_classes


class LinearHead(PackedLinear):
    """One linear map to every class.

    transform  f, applied before it; None for nothing.
    sparse     whether few positions have a target, so that the others are left out before anything is computed.
    """

    def __init__(
        self, width: int, n_answers: int, bias: bool = True, transform: nn.Module | None = None, sparse: bool = False
    ) -> None:
        super().__init__(width, n_answers, bias)
        self.transform = nn.Identity() if transform is None else transform
        self.sparse = sparse

    @property
    def n_answers(self) -> int:
        return self.out_features

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # of vectors, and with targets if there are any
        self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0
    ) -> Tensor:
        """Logits (..., V) of vectors (..., D); with targets (...) the summed loss, epsilon shared by all classes."""
        if targets is None:
            return self.logits(self.transform(vectors))
        if self.sparse:
            counted = targets != NOT_COUNTED
            vectors, targets = vectors[counted], targets[counted]
        h = self.transform(vectors).flatten(0, -2)
        return linear_cross_entropy(h, self.weight, self.bias, targets.flatten(), NOT_COUNTED, label_smoothing)

    @staticmethod
    def averaged(answers: Tensor) -> Tensor:
        """The log of the mean probabilities of several models' logits (K, ..., V)."""
        return answers.log_softmax(-1).logsumexp(0) - math.log(len(answers))

    def logits(self, x: Tensor) -> Tensor:
        """x W^T + b (..., V)."""
        y = self.by_copy(x)
        return to_classes(x, self.weight, self.bias) if y is None else y


class LogitsHead(nn.Module):
    """The head of a model whose vectors are its logits."""

    def __init__(self, n_answers: int) -> None:
        super().__init__()
        self.n_answers = n_answers

    def forward(self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0) -> Tensor:
        if targets is None:
            return vectors
        logits = vectors.flatten(0, -2)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        smoothing = {"ignore_index": NOT_COUNTED, "label_smoothing": label_smoothing}
        return F.cross_entropy(logits, targets.flatten(), reduction="sum", **smoothing)
