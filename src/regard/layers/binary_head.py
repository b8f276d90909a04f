"""The head of labels that stand each for itself: a chance for every one, whatever the others are.

p_l = sigmoid(z_l),  z = W f(h) + b        loss = - sum_l t_l log p_l + (1 - t_l) log(1 - p_l)
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.head import LinearHead


class BinaryHead(LinearHead):
    """Vectors (..., D) to the log-odds of each label, (..., L)."""

    def __init__(self, width: int, n_answers: int, transform: nn.Module | None = None) -> None:
        super().__init__(width, n_answers, transform=transform)

    @staticmethod
    def averaged(answers: Tensor) -> Tensor:
        """The log-odds of the mean chances of several models' log-odds (K, ..., L)."""
        yes, no = (F.logsigmoid(sign * answers).logsumexp(0) for sign in (1, -1))
        return yes - no

    def forward(self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0) -> Tensor:
        """Log-odds, or with targets (..., L) of 0 and 1, NaN where one does not count, the summed loss.

        label_smoothing  epsilon: 1 becomes 1 - epsilon / 2, and 0 epsilon / 2.
        """
        logits = super().forward(vectors)
        if targets is None:
            return logits
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        wanted = targets.nan_to_num() * (1 - label_smoothing) + label_smoothing / 2
        loss = F.binary_cross_entropy_with_logits(logits, wanted.to(logits), reduction="none")
        return (loss * ~targets.isnan()).sum()
