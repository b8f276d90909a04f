"""A chain of tags in exact numbers: what a sentence's tags weigh together, summed over all ways to tag it.

    score(y | x) = start_(y_1) + sum_t E_t,(y_t) + sum_t A_(y_(t-1)),(y_t) + end_(y_T)
    log p(y | x) = score(y | x) - log Z,    Z = sum_y exp score(y | x)

    a_t(c)   the sum over all beginnings that end in tag c at word t; b_t(c) over all ends after it     (Rabiner 1989)
    p_t(c)   = a_t(c) b_t(c) / Z, the chance of tag c at word t

Words lie in the order of time: the first words of all sentences, longest sentence first, then the second words. So each
step of the recursion is one product of matrices over all sentences that are long enough, and there is no padding. The
largest number of each word, and the sum of each step, are taken out and kept as logarithms: nothing leaves the range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ByTime:
    """Words of sentences in the order of time.

    places   (N,): where each word stands when sentences lie end to end.
    before   (N - n,): of all words but the first ones, the place in this order of the word before it.
    last     (n,): the places in this order of the last words.
    bounds   (T + 1,): where the words of each time begin.
    """

    places: np.ndarray
    before: Tensor
    last: Tensor
    bounds: np.ndarray

    @property
    def n_sentences(self) -> int:
        return len(self.last)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """First and end of the words of each time."""
        return list(zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True))


def by_time(sizes: np.ndarray) -> ByTime:
    """The order of the words of sentences so long; those without words have none."""
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    longest = int(sizes.max()) if len(order) else 0
    active = np.array([int((sizes > t).sum()) for t in range(longest)], np.int64)
    bounds = np.concatenate([[0], np.cumsum(active)])
    time = np.repeat(np.arange(longest), active)
    rank = np.arange(bounds[-1]) - bounds[time]
    before = bounds[time[len(order) :] - 1] + rank[len(order) :]
    last = bounds[sizes[order] - 1] + np.arange(len(order))
    return ByTime(starts[order][rank] + time, torch.from_numpy(before), torch.from_numpy(last), bounds)


@dataclass(frozen=True, eq=False)
class Sums:
    """log_z: summed over sentences. tags (N, C): the chance of each tag of each word. pairs (C, C): how often each tag
    is expected after each. start, end (C,): how often each begins and ends a sentence.
    """

    log_z: float
    tags: Tensor
    pairs: Tensor
    start: Tensor
    end: Tensor


def sums(order: ByTime, emissions: Tensor, between: Tensor, start: Tensor, end: Tensor) -> Sums:
    """Forward and backward over all sentences. emissions (N, C) in the order of time."""
    top = emissions.amax(1, keepdim=True)
    e = (emissions - top).exp_()
    highest = float(between.max())
    a_to = (between - highest).exp()
    steps = order.steps
    n_sentences = order.n_sentences
    e[:n_sentences] *= start.exp()
    e[order.last] *= end.exp()
    alpha, scale = torch.empty_like(e), torch.empty_like(e[:, :1])
    for t, (first, stop) in enumerate(steps):
        here = e[first:stop]
        if t:
            size, back = stop - first, steps[t - 1][0]
            here = (alpha[back : back + size] @ a_to).mul_(here)
        scale[first:stop] = here.sum(1, keepdim=True)
        torch.div(here, scale[first:stop], out=alpha[first:stop])
    # e becomes e_t b_t / scale_t, which both the chances and the pairs are made of.
    right, beta = e.div_(scale), torch.ones_like(e)
    from_a = a_to.T.contiguous()
    for t in range(len(steps) - 1, 0, -1):
        first, stop = steps[t]
        back = steps[t - 1][0]
        right[first:stop] *= beta[first:stop]
        torch.mm(right[first:stop], from_a, out=beta[back : back + stop - first])
    right[:n_sentences] *= beta[:n_sentences]
    pairs = a_to * (alpha[order.before].T @ right[n_sentences:])
    tags = beta.mul_(alpha)
    log_z = float(top.sum(dtype=torch.float64) + scale.log().sum(dtype=torch.float64)) + highest * (
        len(e) - n_sentences
    )
    return Sums(log_z, tags, pairs, tags[:n_sentences].sum(0), tags[order.last].sum(0))
