"""A conditional random field over tags: a tag is chosen together with its neighbours, not for itself.

    score(y | x) = start_(y_1) + sum_t E_t,(y_t) + sum_t A_(y_(t-1)),(y_t) + end_(y_T)
    log p(y | x) = score(y | x) - log Z            Z = sum_y exp score(y | x), over all ways to tag the sentence

    E_t     the emissions: what a model says of word t alone, W f(h_t) + b
    A       the transitions: what a tag, the row, says of the next one
    Z       by the forward algorithm; the best y by Viterbi's; p(y_t | x) by forward and backward (Rabiner 1989)

Lafferty, McCallum, Pereira 2001; as the head of a network Huang, Xu, Yu 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.inputs import NOT_COUNTED
from regard.errors import UsageError
from regard.layers.head import LinearHead


@dataclass(frozen=True, eq=False)
class Chain:
    """between (C, C): A. start, end (C,): of the first and the last tag. -inf forbids."""

    between: Tensor
    start: Tensor
    end: Tensor

    def __add__(self, other: Chain) -> Chain:
        return Chain(self.between + other.between, self.start + other.start, self.end + other.end)

    def to(self, like: Tensor) -> Chain:
        """Of the number type and on the device of `like`."""
        return Chain(self.between.to(like), self.start.to(like), self.end.to(like))


@runtime_checkable
class Decodes(Protocol):
    """A head, or a model whose vectors are its answers, that chooses the tags of a sentence together.

    vectors (B, T, D): as the model gives them, of which the first `lengths` (B,) of each row count. One
    that has `score_ways` too is held against every way to tag by the law of enumeration (regard/laws/chain.py).
    """

    def decode(self, vectors: Tensor, lengths: Tensor, allowed: Chain | None = None) -> Tensor:
        """The best tags (B, T) among those that are allowed; 0 after the end of a row."""
        ...

    def log_chances(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """log p of each tag of each word, whatever the others are, (B, T, C)."""
        ...

    def chain(self) -> Chain:
        """What the tags say of their neighbours."""
        ...


def log_partition(emissions: Float[Tensor, "B T C"], lengths: Int[Tensor, "B"], chain: Chain) -> Float[Tensor, "B"]:
    """log Z of each row; 0 of one without words."""
    alpha = _forward(emissions, lengths, chain)[-1]
    return torch.where(lengths > 0, (alpha + chain.end).logsumexp(-1), 0.0)


def log_chances(emissions: Float[Tensor, "B T C"], lengths: Int[Tensor, "B"], chain: Chain) -> Float[Tensor, "B T C"]:
    """log p(y_t = c | x); after the end of a row what stands there means nothing."""
    n_words = emissions.shape[1]
    alpha = torch.stack(_forward(emissions, lengths, chain), 1)
    beta = chain.end.expand_as(alpha[:, 0])
    found = [beta]
    for t in range(n_words - 1, 0, -1):
        ahead = (chain.between + (emissions[:, t] + beta)[:, None, :]).logsumexp(-1)
        beta = torch.where((t < lengths)[:, None], ahead, beta)
        found.append(beta)
    return (alpha + torch.stack(found[::-1], 1)).log_softmax(-1)


def log_score(
    emissions: Float[Tensor, "B T C"], tags: Int[Tensor, "B T"], lengths: Int[Tensor, "B"], chain: Chain
) -> Float[Tensor, "B"]:
    """score(y | x) of each row; 0 of one without words."""
    real = torch.arange(tags.shape[1], device=tags.device) < lengths[:, None]
    tags = tags.masked_fill(~real, 0)
    words = emissions.gather(-1, tags[..., None])[..., 0]
    steps = chain.between[tags[:, :-1], tags[:, 1:]]
    last = tags.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
    ends = torch.where(lengths > 0, chain.start[tags[:, 0]] + chain.end[last], 0.0)
    return (words * real).sum(1) + (steps * real[:, 1:]).sum(1) + ends


def score_ways(emissions: Float[Tensor, "1 T C"], ways: Int[Tensor, "N T"], chain: Chain) -> Float[Tensor, "N"]:
    """score(y | x) of many ways to tag one sentence."""
    lengths = torch.full((len(ways),), ways.shape[1], device=ways.device)
    return log_score(emissions.expand(len(ways), -1, -1), ways, lengths, chain)


def viterbi(emissions: Float[Tensor, "B T C"], lengths: Int[Tensor, "B"], chain: Chain) -> Int[Tensor, "B T"]:
    """The tags with the largest score; of equal ones the first. 0 after the end of a row."""
    n_rows, n_words, _ = emissions.shape
    best, back = chain.start + emissions[:, 0], []
    for t in range(1, n_words):
        ahead, came_from = (best[:, :, None] + chain.between).max(1)
        real = (t < lengths)[:, None]
        best = torch.where(real, ahead + emissions[:, t], best)
        back.append(came_from)
    tag = (best + chain.end).argmax(-1)
    found = emissions.new_zeros(n_rows, n_words, dtype=torch.long)
    for t in range(n_words - 1, -1, -1):
        found[:, t] = torch.where(t < lengths, tag, 0)
        if t:
            before = back[t - 1].gather(1, tag[:, None])[:, 0]
            tag = torch.where(t < lengths, before, tag)
    return found


def _forward(emissions: Tensor, lengths: Tensor, chain: Chain) -> list[Tensor]:
    """log of the sums over all beginnings, by the tag they end in: (B, C) for each word."""
    found = [chain.start + emissions[:, 0]]
    for t in range(1, emissions.shape[1]):
        ahead = (found[-1][:, :, None] + chain.between).logsumexp(1) + emissions[:, t]
        found.append(torch.where((t < lengths)[:, None], ahead, found[-1]))
    return found


class CrfHead(LinearHead):
    """Emissions by one linear map, and transitions between tags.

    Without targets it gives the emissions, which say nothing of neighbours: `decode` and `log_chances` do.
    """

    def __init__(self, width: int, n_answers: int, transform: nn.Module | None = None) -> None:
        super().__init__(width, n_answers, transform=transform)
        self.between = nn.Parameter(torch.zeros(n_answers, n_answers))
        self.start = nn.Parameter(torch.zeros(n_answers))
        self.end = nn.Parameter(torch.zeros(n_answers))

    def chain(self) -> Chain:
        return Chain(self.between, self.start, self.end)

    def forward(self, vectors: Tensor, targets: Tensor | None = None, label_smoothing: float = 0.0) -> Tensor:
        """Emissions (B, T, C), or with targets (B, T) the sum of -log p of the tags of each row.

        Words without a target, such as later pieces of a word, are left out of the chain.
        """
        emissions = super().forward(vectors)
        if targets is None:
            return emissions
        if label_smoothing:
            raise UsageError(
                "train.label_smoothing: a CRF head has one answer for a sentence; leave it out, or set "
                "model.head=linear"
            )
        counted = targets != NOT_COUNTED
        order = (~counted).byte().argsort(dim=1, stable=True)
        emissions, chain = self._exact(emissions.gather(1, order[..., None].expand_as(emissions)))
        lengths = counted.sum(1)
        tags = targets.gather(1, order).clamp_min(0)
        return (log_partition(emissions, lengths, chain) - log_score(emissions, tags, lengths, chain)).sum()

    def decode(self, vectors: Tensor, lengths: Tensor, allowed: Chain | None = None) -> Tensor:
        emissions, chain = self._exact(self(vectors))
        return viterbi(emissions, lengths, chain if allowed is None else chain + allowed.to(emissions))

    def log_chances(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        emissions, chain = self._exact(self(vectors))
        return log_chances(emissions, lengths, chain)

    def score_ways(self, vectors: Tensor, ways: Tensor) -> Tensor:
        emissions, chain = self._exact(self(vectors))
        return score_ways(emissions, ways, chain)

    def _exact(self, emissions: Tensor) -> tuple[Tensor, Chain]:
        """In float32 at least: sums over a sentence are not for half precision."""
        emissions = emissions.to(torch.promote_types(emissions.dtype, torch.float32))
        return emissions, self.chain().to(emissions)
