"""Dropout on vectors (B, T, D): drawn anew at every position, or locked, once for a whole row.

x_t = x_t * m_t / (1 - p)       m_t ~ Bernoulli(1 - p)               Srivastava et al. 2014
x_t = x_t * m / (1 - p)         one m for all t of a row: locked     Gal and Ghahramani 2016, "variational"
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class LockedDropout(nn.Dropout):
    """The same units of a row are gone at each of its positions. A row is what lies along the first axis."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return input
        return input * F.dropout(input.new_ones(len(input), 1, input.shape[-1]), self.p)


def dropout(share: float, locked: bool = False) -> nn.Module:
    """The module that drops this share of the units; nothing where it is 0."""
    if not share:
        return nn.Identity()
    return LockedDropout(share) if locked else nn.Dropout(share)


def locks(part: nn.Module) -> bool:
    """Whether something in a part must know where rows begin, so that texts may not lie end to end in one of them."""
    return any(isinstance(one, LockedDropout) for one in part.modules())
