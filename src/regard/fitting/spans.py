"""Spans of a long array, end to end: where the entries of several rows lie in it.

first  where each span begins; sizes: how many entries it has.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def places(first: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The places of all entries of spans, one span after the other.

    >>> places(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    return np.arange(int(sizes.sum())) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)


def places_on(first: Tensor, sizes: Tensor) -> Tensor:
    """The same of tensors, on their device."""
    every = torch.arange(int(sizes.sum()), device=sizes.device)
    return every + (first - sizes.cumsum(0) + sizes).repeat_interleave(sizes)
