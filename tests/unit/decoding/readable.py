"""The cuts and the draw for one row, token by token, as they are told: what all faster forms are held to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from regard.decoding.logits_processing import GREEDY, Sampling

SETTINGS = [
    GREEDY,
    Sampling(),
    Sampling(0.7),
    Sampling(top_k=1),
    Sampling(top_k=3),
    Sampling(2.0, top_k=1000),
    Sampling(top_p=0.5),
    Sampling(top_p=1e-9),
    Sampling(0.5, top_k=7, top_p=0.8),
    Sampling(min_p=0.3),
    Sampling(min_p=1.0),
    Sampling(1.5, top_k=20, top_p=0.95, min_p=0.01),
]


def logits_of(width: int, form: str) -> Tensor:
    """A row for each of SETTINGS."""
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(len(SETTINGS), width, generator=generator, dtype=torch.float64) * 2
    # Equal values, so that the order among them counts, and tokens that are impossible.
    return {"different": x, "equal": x.round(), "some impossible": x.masked_fill(x < -1, -math.inf)}[form]


def probabilities(logits: Sequence[float], settings: Sampling) -> list[float]:
    """What a token is drawn from: 0 for a token that temperature, top-k, top-p or min-p cut off, in this order."""
    order = sorted((i for i, x in enumerate(logits) if x > -math.inf), key=lambda i: (-logits[i], i))
    best = logits[order[0]]
    if settings.temperature == 0:
        return [float(i == order[0]) for i in range(len(logits))]
    weight = {i: math.exp((logits[i] - best) / settings.temperature) for i in order}
    order = order[: settings.top_k]
    total, before = math.fsum(weight[i] for i in order), 0.0
    nucleus = []
    for i in order:
        if settings.top_p == 1 or before < settings.top_p:
            nucleus.append(i)
        before += weight[i] / total
    stay = {i for i in nucleus if weight[i] >= settings.min_p}
    total = math.fsum(weight[i] for i in stay)
    return [weight[i] / total if i in stay else 0.0 for i in range(len(logits))]


def drawn(shares: Sequence[float], uniform: float) -> int:
    """The token whose share of the interval holds `uniform`; the last possible one where rounding leaves none."""
    total = sum(shares)
    above = (i for i, summed in enumerate(accumulate(shares)) if summed > uniform * total)
    return next(above, max(i for i, share in enumerate(shares) if share > 0))


def drawn_with(logits: Sequence[float], settings: Sampling, uniform: float) -> int:
    return drawn(probabilities(logits, settings), uniform)
