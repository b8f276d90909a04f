"""The order of samples as a pure function of (seed, epoch, index), so that the position in the data is one integer.

A Feistel network over 2^bits >= n values, with a round function keyed by (seed, epoch), permutes any range of that
size; values that fall outside 0 .. n-1 are sent through again until they fall inside (cycle walking, Black and Rogaway
2002). No array of n entries is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

# Even, so that halves of unequal size end where they began.
ROUNDS = 6
MASK = (1 << 64) - 1
# The network costs about 0.5 ms for one index as for a thousand, so neighbours are computed together and kept.
BLOCK = 4096


def mixed(*numbers: int) -> int:
    """A 64-bit hash of whole numbers (the finaliser of splitmix64, chained)."""
    state = 0
    for number in numbers:
        state = (state + (number & MASK) + 0x9E3779B97F4A7C15) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        state ^= state >> 31
    return state


def permuted(index: npt.ArrayLike, n: int, key: int) -> Any:
    """Where the permutation of 0 .. n-1 chosen by `key` sends `index`: an array of its shape, a number for a number."""
    values = np.asarray(index)
    if n < 1 or (values.size and (values.min() < 0 or values.max() >= n)):
        raise IndexError(f"an index of a permutation of {n} must lie in 0 .. {n - 1}")
    bits = max(2, (n - 1).bit_length())
    round_keys = [np.uint64(mixed(key, i)) for i in range(ROUNDS)]
    result = _network(values.astype(np.uint64).reshape(-1), bits, round_keys)
    outside = np.flatnonzero(result >= n)
    while outside.size:
        result[outside] = _network(result[outside], bits, round_keys)
        outside = outside[result[outside] >= n]
    return result.astype(np.int64).reshape(values.shape)[()]


def permutation(seed: int, epoch: int, n: int) -> Callable[[npt.ArrayLike], Any]:
    """The order of n samples in an epoch, as a function from positions to samples."""
    key = mixed(seed, epoch)
    return lambda index: permuted(index, n, key)


def drawn(numbers: np.ndarray, n: int, seed: int) -> np.ndarray:
    """The samples, each in 0 .. n-1, that the global sample numbers 0, 1, 2, ... stand for: an epoch is n of them."""
    epochs, places = numbers // n, numbers % n
    blocks = epochs * (-(-n // BLOCK)) + places // BLOCK
    result = np.empty_like(numbers)
    for block in np.unique(blocks):
        here = blocks == block
        order = _block(seed, int(epochs[here][0]), n, int(places[here][0]) // BLOCK)
        result[here] = order[places[here] % BLOCK]
    return result


@lru_cache(maxsize=64)
def _block(seed: int, epoch: int, n: int, block: int) -> np.ndarray:
    first = block * BLOCK
    order = permutation(seed, epoch, n)(np.arange(first, min(first + BLOCK, n)))
    order.flags.writeable = False
    return order


def _network(values: np.ndarray, bits: int, round_keys: list[np.uint64]) -> np.ndarray:
    """The Feistel permutation of 0 .. 2^bits - 1. The halves, one bit apart when `bits` is odd, swap each round."""
    left_bits, right_bits = bits // 2, bits - bits // 2
    left, right = values >> np.uint64(right_bits), values & np.uint64((1 << right_bits) - 1)
    for round_key in round_keys:
        left, right = right, left ^ (_scrambled(right + round_key) & np.uint64((1 << left_bits) - 1))
        left_bits, right_bits = right_bits, left_bits
    return (left << np.uint64(right_bits)) | right


def uniform(keys: Sequence[int], count: int) -> np.ndarray:
    """`count` numbers in [0, 1) for each 64-bit key, (keys, count) float64: a pure function of both."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (_scrambled(np.array(keys, dtype=np.uint64)[:, None] + steps) >> np.uint64(11)) * 2.0**-53


def _scrambled(values: np.ndarray) -> np.ndarray:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
