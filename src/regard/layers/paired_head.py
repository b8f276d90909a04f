"""The head of a classifier with two halves: a net that learns by steps, and one that was solved for.

    log p = log softmax((1 - s) log p_net + s log p_solved)        s: the share of the second, found on what is held out

The loss is that of the answer, its gradient that of the net alone: with the answer of the other before its eyes, which
knows the texts of training by heart, the net would find nothing left to learn.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.inputs import NOT_COUNTED
from regard.layers.head import LinearHead

SHARE = 0.5  # before anything was held out


class PairedHead(LinearHead):
    """Its vectors (..., D + C) end with the log-probabilities of the half that was solved for."""

    share: Tensor

    def __init__(self, width: int, n_answers: int, transform: nn.Module | None = None) -> None:
        super().__init__(width, n_answers, transform=transform)
        self.register_buffer("share", torch.tensor(SHARE))

    def forward(self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0) -> Tensor:
        """Log-probabilities (..., C) of vectors; with targets (...) the summed loss."""
        if targets is None:
            return self.mixed(*self.halves(vectors))
        own = super().forward(vectors[..., : self.in_features], targets, label_smoothing)
        with torch.no_grad():
            answers = self.mixed(*self.halves(vectors)).flatten(0, -2)
            told = F.nll_loss(answers, targets.flatten(), ignore_index=NOT_COUNTED, reduction="sum")
        return own + (told - own).detach()

    def halves(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """The log-probabilities of the net and of the other half, (..., C) each."""
        vectors, solved = vectors.split([self.in_features, self.n_answers], -1)
        logits = super().forward(vectors)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return wide.log_softmax(-1), solved.to(wide.dtype)

    def mixed(self, net: Tensor, solved: Tensor) -> Tensor:
        return torch.lerp(net, solved, self.share.to(net.dtype)).log_softmax(-1)
