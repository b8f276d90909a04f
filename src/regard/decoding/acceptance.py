"""The rule by which proposed tokens stand (Leviathan, Kalman and Matias 2023, 2.3; Chen et al. 2023, theorem 1).

    x_i stands with probability min(1, p(x_i) / q(x_i))
    the first that does not is drawn anew from max(0, p - q), normalised, and those after it are dropped
    when all stand, one more is drawn from p

Then every token has the distribution p: x comes with min(p, q) as a proposal, and with what is left of p otherwise.

Glossary
p   what tokens are drawn from: the model's distribution after temperature, top-k, top-p and min-p
q   what the draft drew its proposal from
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.device import wide
from regard.decoding.drawing import drawn_from
from regard.decoding.logits_processing import Sampling, raw_log_probs, warped_log_probs
from regard.decoding.philox import as_int64, uniforms

BLOCK = 64  # tokens whose random numbers are made at one time


class Proposal(NamedTuple):
    """Tokens and the distributions (n, V) that they were drawn from; None where there was nothing to draw."""

    tokens: list[int]
    log_q: Float[Tensor, "n V"] | None = None


class TokenChances(NamedTuple):
    """The random numbers of one token: that of its proposal, that which decides on it, and that of a token drawn."""

    draft: float
    accept: float
    draw: float


class TextChances:
    """The random numbers of the tokens of one text, by the tokens' numbers."""

    def __init__(self, seed: int, row: int) -> None:
        self.origin = torch.tensor([as_int64(seed), as_int64(row)])
        self.blocks: dict[int, list[list[float]]] = {}

    def of(self, number: int) -> TokenChances:
        block, place = divmod(number, BLOCK)
        if block not in self.blocks:
            # A proposal reaches at most into the block after the one that the text is in, or into a few.
            self.blocks = {known: table for known, table in self.blocks.items() if known >= block - 1}
            counter = 3 * BLOCK * block + torch.arange(3 * BLOCK)
            seed, row = self.origin[:, None].expand(-1, 3 * BLOCK)
            self.blocks[block] = uniforms(seed, row, counter).view(BLOCK, 3).tolist()
        return TokenChances(*self.blocks[block][place])


@torch.no_grad()
def judged(
    logits: Float[Tensor, "n1 V"], proposal: Proposal, settings: Sampling, chances: Sequence[TokenChances]
) -> tuple[list[int], list[float]]:
    """The proposed tokens that stand and one more, with their raw log-probabilities.

    After a token that leaves the model without numbers nothing is drawn; where it has none to begin with, the token
    is 0 and its log-probability NaN.
    """
    raw = raw_log_probs(logits)
    numbers = raw[:, 0].isnan().long().cumsum(0).tolist().count(0)
    if numbers == 0:
        return [0], [math.nan]
    proposed = proposal.tokens[: numbers - 1]
    logits, raw = logits[:numbers], raw[:numbers]
    if settings.greedy:
        best = logits.argmax(-1).tolist()
        standing = next((i for i, token in enumerate(proposed) if token != best[i]), len(proposed))
        tokens = best[: standing + 1]
    else:
        tokens = _accepted(wide(warped_log_probs(logits, settings)), proposed, proposal.log_q, chances)
    index = torch.tensor(tokens, device=raw.device)[:, None]
    return tokens, raw[: len(tokens)].gather(-1, index)[:, 0].tolist()


def _accepted(
    log_p: Float[Tensor, "n1 V"], proposed: list[int], log_q: Tensor | None, chances: Sequence[TokenChances]
) -> list[int]:
    """The rule: proposed tokens as long as they stand, and one that is drawn. Without log_q, q is 1 at the proposal."""
    n = len(proposed)
    x = torch.tensor(proposed, dtype=torch.long, device=log_p.device)[:, None]
    log_q = None if log_q is None else log_q[:n].to(log_p)
    ratio = log_p[:n].gather(-1, x) - (0 if log_q is None else log_q.gather(-1, x))
    for i, value in enumerate(ratio[:, 0].exp().tolist()):
        if chances[i].accept < value:
            continue
        p = log_p[i].exp()
        q = torch.zeros_like(p).index_fill_(0, x[i], 1) if log_q is None else log_q[i].exp()
        rest = (p - q).clamp(min=0)
        # p and q that differ by rounding alone leave nothing.
        return [*proposed[:i], drawn((rest if rest.sum() > 0 else p).log(), chances[i].draw)]
    return [*proposed, drawn(log_p[n], chances[n].draw)]


def drawn(log_probs: Float[Tensor, "V"], chance: float) -> int:
    """One token by one random number."""
    return int(drawn_from(log_probs[None], torch.tensor([chance], dtype=torch.float64)))
