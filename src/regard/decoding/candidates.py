"""The best continuations of every beam, found for all beams together.

    offer(text, token) = log p(text) + log p(token | text)

One pass over all log-probabilities finds the largest of every 64 neighbours. Of n offers wanted none lies outside the n
blocks whose largest comes first, so that all further work is on those alone. Of equal offers that of the earlier text
comes first, then the lower token.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.logits_processing import largest

BLOCK = 64


class Offer(NamedTuple):
    """A live text of a beam, by its number there, with one token more; `total` is the log-probability of both."""

    total: float
    parent: int
    token: int
    log_prob: float


def best_offers(log_probs: Float[Tensor, "R V"], totals: list[list[float]], count: int) -> list[list[Offer]]:
    """For each beam its `count` best possible offers, fewer where there are fewer, best first.

    log_probs  of the token after each live text, the texts of the first beam first.
    totals     log p of the live texts of each beam, of which none is without any.
    """
    n_blocks = -(-log_probs.shape[1] // BLOCK)
    beams = _Beams(totals, log_probs.device)
    sums = beams.side_by_side(_block_maxima(log_probs).double()) + beams.totals[..., None]
    blocks = largest(sums.flatten(1), min(count, beams.most * n_blocks)).sort(-1).values
    parents, tokens, values = _opened(log_probs, beams, blocks, n_blocks)
    sums = beams.totals.gather(1, parents) + values
    best = largest(sums, min(count, sums.shape[1]))
    columns = [column.gather(1, best).tolist() for column in (sums, parents, tokens, values)]
    return [
        [Offer(*numbers) for numbers in zip(*rows, strict=True) if numbers[0] > -math.inf]
        for rows in zip(*columns, strict=True)
    ]


class _Beams:
    """Where the live texts of each beam stand: beams side by side, padded to the one with the most texts.

    totals  (n, most) log p of each text, minus infinity where there is none.
    first   (n, 1) the number of a beam's first text among all texts.
    """

    def __init__(self, totals: list[list[float]], device: torch.device) -> None:
        sizes = [len(beam) for beam in totals]
        self.most = max(sizes)
        self.even = min(sizes) == self.most
        rows = [beam + [-math.inf] * (self.most - len(beam)) for beam in totals]
        self.totals = torch.tensor(rows, dtype=torch.float64).to(device)
        self.first = (torch.tensor(sizes).cumsum(0) - torch.tensor(sizes))[:, None].to(device)

    def side_by_side(self, texts: Tensor) -> Tensor:
        """(R, ...) of all texts as (n, most, ...); what stands in the padding does not matter."""
        if self.even:
            return texts.unflatten(0, (-1, self.most))
        return texts[self.number(torch.arange(self.most, device=texts.device), len(texts))]

    def number(self, parents: Tensor, n_texts: int) -> Tensor:
        """Among all texts the number of those that are called `parents` (n, ...) in their beam."""
        return (self.first + parents).clamp(max=n_texts - 1)


def _block_maxima(log_probs: Tensor) -> Tensor:
    """The largest value of every 64 neighbours; those at the end may be fewer."""
    whole = log_probs.shape[1] // BLOCK * BLOCK
    maxima = log_probs[:, :whole].unflatten(1, (-1, BLOCK)).amax(-1)
    if whole == log_probs.shape[1]:
        return maxima
    return torch.cat([maxima, log_probs[:, whole:].amax(-1, keepdim=True)], 1)


def _opened(
    log_probs: Tensor, beams: _Beams, blocks: Int[Tensor, "n k"], n_blocks: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Text, token and log-probability (float64) of everything in the chosen blocks, (n, k * 64) each."""
    vocab_size = log_probs.shape[1]
    parents = (blocks // n_blocks).repeat_interleave(BLOCK, 1)
    tokens = ((blocks % n_blocks * BLOCK)[..., None] + torch.arange(BLOCK, device=blocks.device)).flatten(1)
    places = beams.number(parents, len(log_probs)) * vocab_size + tokens.clamp(max=vocab_size - 1)
    values = log_probs.take(places).double().masked_fill(tokens >= vocab_size, -math.inf)
    return parents, tokens, values
