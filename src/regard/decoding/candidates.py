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

from regard.core.device import wide, widest
from regard.decoding.logits_processing import largest

BLOCK = 64


class Offer(NamedTuple):
    """A live text of a beam, by its number there, with one token more; `total` is the log-probability of both."""

    total: float
    parent: int
    token: int
    log_prob: float


def best_offers(
    log_probs: Float[Tensor, "R V"], rows: list[list[int]], totals: list[list[float]], count: int
) -> list[list[Offer]]:
    """For each beam its `count` best possible offers, fewer where there are fewer, best first.

    log_probs  of the token after each live text, wherever it stands.
    rows       for each beam where those of its live texts stand; none is without any.
    totals     log p of these texts.
    """
    n_blocks = -(-log_probs.shape[1] // BLOCK)
    places, before = _side_by_side(rows, totals, log_probs.device)
    sums = wide(_block_maxima(log_probs))[places] + before[..., None]
    blocks = largest(sums.flatten(1), min(count, places.shape[1] * n_blocks)).sort(-1).values
    parents, tokens, values = _opened(log_probs, places, blocks, n_blocks)
    sums = before.gather(1, parents) + values
    best = largest(sums, min(count, sums.shape[1]))
    columns = [column.gather(1, best).tolist() for column in (sums, parents, tokens, values)]
    return [
        [Offer(*numbers) for numbers in zip(*beam, strict=True) if numbers[0] > -math.inf]
        for beam in zip(*columns, strict=True)
    ]


def _side_by_side(
    rows: list[list[int]], totals: list[list[float]], device: torch.device
) -> tuple[Int[Tensor, "n m"], Float[Tensor, "n m"]]:
    """Row and log p of each text, beams padded to the one with the most texts by texts of log p minus infinity."""
    most = max(map(len, rows))
    places = [beam + [0] * (most - len(beam)) for beam in rows]
    before = [beam + [-math.inf] * (most - len(beam)) for beam in totals]
    return torch.tensor(places).to(device), torch.tensor(before, dtype=widest(device)).to(device)


def _block_maxima(log_probs: Tensor) -> Tensor:
    """The largest value of every 64 neighbours; those at the end may be fewer."""
    whole = log_probs.shape[1] // BLOCK * BLOCK
    maxima = log_probs[:, :whole].unflatten(1, (-1, BLOCK)).amax(-1)
    if whole == log_probs.shape[1]:
        return maxima
    return torch.cat([maxima, log_probs[:, whole:].amax(-1, keepdim=True)], 1)


def _opened(
    log_probs: Tensor, rows: Int[Tensor, "n m"], blocks: Int[Tensor, "n k"], n_blocks: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Text, token and log-probability (float64) of everything in the chosen blocks, (n, k * 64) each."""
    vocab_size = log_probs.shape[1]
    parents = (blocks // n_blocks).repeat_interleave(BLOCK, 1)
    tokens = ((blocks % n_blocks * BLOCK)[..., None] + torch.arange(BLOCK, device=blocks.device)).flatten(1)
    places = rows.gather(1, parents) * vocab_size + tokens.clamp(max=vocab_size - 1)
    values = wide(log_probs.take(places)).masked_fill(tokens >= vocab_size, -math.inf)
    return parents, tokens, values
