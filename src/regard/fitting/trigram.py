"""Tags of which each depends on the two before it: their chances, the best ones of a sentence, and their sum.

    p(t_3 | t_1, t_2) = l_1 f(t_3) + l_2 f(t_3 | t_2) + l_3 f(t_3 | t_1, t_2)         f: relative frequencies
    l   by deleted interpolation: every trigram votes with its count for the order that predicts it best without it
    score(t | w) = sum_i log p(t_i | t_(i-2), t_(i-1)) + log p(w_i | t_i), with a boundary before and after the sentence

Brants 2000, TnT - a statistical part-of-speech tagger. Of each word only its `beam` likeliest tags are followed, and
all of them where there are no more: then Viterbi's result is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


def trigram_counts(tags: np.ndarray, sizes: np.ndarray, n_tags: int) -> np.ndarray:
    """How often each tag follows each two, (C + 1, C + 1, C + 1); C stands for the boundary on both sides."""
    wide, total = n_tags + 1, int(sizes.sum())
    at = np.arange(total) + 3 * np.repeat(np.arange(len(sizes)), sizes) + 2
    line = np.full(total + 3 * len(sizes), n_tags, np.int64)
    line[at] = tags
    ends = np.cumsum(sizes + 3) - 1
    keys = np.sort(np.concatenate([at, ends[sizes > 0]]))
    flat = (line[keys - 2] * wide + line[keys - 1]) * wide + line[keys]
    return np.bincount(flat, minlength=wide**3).reshape(wide, wide, wide)


def interpolation(counts: np.ndarray) -> np.ndarray:
    """l_1, l_2, l_3 of the counts of trigrams."""
    after = counts.sum(0)
    single, total = after.sum(0), counts.sum()
    first, second, third = np.nonzero(counts)
    n = counts[first, second, third]

    def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return np.where(whole > 1, (part - 1) / np.maximum(whole - 1, 1), 0.0)

    cases = np.stack(
        [
            share(single[third], np.full_like(n, total)),
            share(after[second, third], after.sum(1)[second]),
            share(n, counts.sum(2)[first, second]),
        ]
    )
    votes = np.bincount(cases.argmax(0), n, minlength=3)
    return votes / max(1, votes.sum())


def log_transitions(counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """log p(t_3 | t_1, t_2), (C + 1, C + 1, C + 1); what was never met keeps a finite, hopeless chance."""
    after = counts.sum(0)

    def normal(part: np.ndarray) -> np.ndarray:
        return part / np.maximum(part.sum(-1, keepdims=True), 1)

    mixed = shares[0] * normal(after.sum(0)) + shares[1] * normal(after) + shares[2] * normal(counts)
    return np.log(np.maximum(mixed, 1e-12))


@dataclass(frozen=True, eq=False)
class Lattice:
    """What a batch of sentences is decoded from.

    steps    (C + 1, C + 1, C + 1): log p of a tag after two; may hold -inf.
    tags     (B, T, K): the tags that are followed of each word. scores (B, T, K): log p(w | t) of these.
    lengths  (B,).
    """

    steps: Tensor
    tags: Tensor
    scores: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, steps: Tensor, emissions: Tensor, lengths: Tensor, beam: int) -> Lattice:
        scores, tags = emissions.topk(min(beam, emissions.shape[-1]), -1)
        return cls(steps, tags, scores, lengths)

    @property
    def boundary(self) -> int:
        return len(self.steps) - 1

    def first(self) -> Tensor:
        """Scores of the boundary and the first tag, (B, 1, K)."""
        return self.steps[self.boundary, self.boundary][self.tags[:, 0]][:, None] + self.scores[:, 0][:, None]

    def before(self, t: int) -> Tensor:
        """The tags at t, (B, K); those before a sentence are the boundary, (B, 1)."""
        return self.tags[:, t] if t >= 0 else torch.full_like(self.tags[:, 0, :1], self.boundary)

    def step(self, t: int) -> Tensor:
        """log p of the tags at t after those at t - 2 and t - 1, (B, K', K, K)."""
        u, v, w = self.before(t - 2)[:, :, None, None], self.tags[:, t - 1][:, None, :, None], self.tags[:, t]
        return self.steps[u, v, w[:, None, None]]

    def ends(self, t: int) -> Tensor:
        """log p of the boundary after the tags at t - 1 and t, (B, K', K)."""
        return self.steps[self.before(t - 1)[:, :, None], self.tags[:, t][:, None], self.boundary]


def viterbi(lattice: Lattice) -> Tensor:
    """The best tags (B, T); 0 after the end of a sentence."""
    n_rows, n_words, _ = lattice.tags.shape
    best, back, done = lattice.first(), [], []
    for t in range(n_words):
        if t:
            best, came_from = (best[..., None] + lattice.step(t)).max(1)
            best = best + lattice.scores[:, t][:, None]
            back.append(came_from)
        done.append((best + lattice.ends(t)).flatten(1).argmax(-1))
    rows, width = torch.arange(n_rows, device=lattice.tags.device), lattice.tags.shape[2]
    found, u, v = rows.new_zeros(n_rows, n_words), torch.zeros_like(rows), torch.zeros_like(rows)
    for t in range(n_words - 1, -1, -1):
        last, inside = lattice.lengths.eq(t + 1), lattice.lengths.gt(t)
        u, v = torch.where(last, done[t] // width, u), torch.where(last, done[t] % width, v)
        found[:, t] = torch.where(inside, lattice.tags[rows, t, v], 0)
        if t:  # the state (u, v) at t - 1, t was entered from (came_from, u)
            earlier = back[t - 1][rows, u, v]
            u, v = torch.where(inside, earlier, u), torch.where(inside, u, v)
    return found


def log_partition(lattice: Lattice) -> Tensor:
    """log of the sum over all ways to tag, (B,)."""
    here = lattice.first()
    total = torch.where(lattice.lengths == 1, (here + lattice.ends(0)).flatten(1).logsumexp(-1), 0.0)
    for t in range(1, lattice.tags.shape[1]):
        here = (here[..., None] + lattice.step(t)).logsumexp(1) + lattice.scores[:, t][:, None]
        ended = (here + lattice.ends(t)).flatten(1).logsumexp(-1)
        total = torch.where(lattice.lengths == t + 1, ended, total)
    return total


def log_chances(steps: Tensor, emissions: Tensor, lengths: Tensor, beam: int) -> Tensor:
    """log p of each tag of each word (B, T, C): the derivative of log Z by what the word says for it."""
    with torch.enable_grad():
        asked = emissions.detach().requires_grad_()
        total = log_partition(Lattice.of(steps, asked, lengths, beam)).sum()
        (chances,) = torch.autograd.grad(total, asked)
    return chances.clamp_min(1e-30).log()
