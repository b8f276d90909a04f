"""Buckets: which samples come together in a batch, as a pure function of (seed, step).

Samples are drawn in pools of whole batches. Within a pool batches are made by length, in one of two ways, and then
taken in random order:

    alike   samples of similar length, so that rows padded to the longest of them hold little padding
    evenly  samples of every length, so that all batches hold about as many tokens: for rows laid end to end

Either way a batch has its number of samples, and an epoch is every sample once.
"""

from __future__ import annotations

import numpy as np

from regard.data.order import drawn, mixed

# Batches of a pool: an epoch of them within these bounds. The more, the less padding: of 512 batches of 32 sentence
# pairs 3% is padding, of 32 batches 11%.
FEWEST, MOST = 32, 512


class Buckets:
    """sizes (n,): how long each sample is, or (n, sides): how long each side of it is."""

    def __init__(self, sizes: np.ndarray, seed: int, *, evenly: bool = False) -> None:
        self.sizes = sizes.reshape(len(sizes), -1)
        self.seed, self.evenly = seed, evenly
        self._kept: tuple[tuple[int, int], np.ndarray, np.ndarray] | None = None

    def batch(self, step: int, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        """The samples of a batch, and their global numbers."""
        n_batches = pool_size(len(self.sizes), batch_size)
        pool, place = divmod(step, n_batches)
        samples, numbers = self._pool(pool, n_batches, batch_size)
        turn = int(drawn(np.array([place]), n_batches, mixed(self.seed, pool))[0])
        return samples[turn], numbers[turn]

    def _pool(self, pool: int, n_batches: int, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples and numbers of all batches of a pool, (n_batches, batch_size); those of the last one are kept."""
        kept = self._kept
        if kept is None or kept[0] != (pool, batch_size):
            numbers = np.arange(pool * n_batches * batch_size, (pool + 1) * n_batches * batch_size)
            samples = drawn(numbers, len(self.sizes), self.seed)
            order = (_evenly if self.evenly else _alike)(self.sizes[samples], n_batches)
            kept = self._kept = ((pool, batch_size), samples[order], numbers[order])
        return kept[1], kept[2]


def pool_size(n_samples: int, batch_size: int) -> int:
    """Batches of a pool."""
    return min(MOST, max(FEWEST, n_samples // batch_size))


def _alike(sizes: np.ndarray, n_batches: int) -> np.ndarray:
    """By the first side; with two of them strips of that order by the second, as many as each then has batches."""
    order = np.argsort(sizes[:, 0], kind="stable")
    batch_size = len(sizes) // n_batches
    if sizes.shape[1] > 1:
        strip = max(1, round(n_batches**0.5)) * batch_size
        parts = [order[first : first + strip] for first in range(0, len(order), strip)]
        order = np.concatenate([part[np.argsort(sizes[part, 1], kind="stable")] for part in parts])
    return order.reshape(n_batches, batch_size)


def _evenly(sizes: np.ndarray, n_batches: int) -> np.ndarray:
    """Dealt out from the longest to the shortest, to and fro."""
    dealt = np.argsort(-sizes.sum(1), kind="stable").reshape(-1, n_batches)
    dealt[1::2] = dealt[1::2, ::-1]
    return dealt.T
