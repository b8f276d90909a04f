"""Trigrams of tags: counts by a loop, the search and the sum by every way to tag."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from enumerated import Ways
from regard.fitting.trigram import (
    Lattice,
    interpolation,
    log_chances,
    log_partition,
    log_transitions,
    trigram_counts,
    viterbi,
)

TAGS, LENGTHS = 3, (4, 1, 2, 3)


@pytest.fixture
def given() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(4)
    steps = torch.randn(TAGS + 1, TAGS + 1, TAGS + 1, dtype=torch.float64).log_softmax(-1)
    return steps, torch.randn(4, 4, TAGS, dtype=torch.float64), torch.tensor(LENGTHS)


def ways(steps: Tensor, emissions: Tensor, length: int) -> Ways:
    def score(way: tuple[int, ...]) -> Tensor:
        line = (TAGS, TAGS, *way, TAGS)
        total = sum(steps[line[i], line[i + 1], line[i + 2]] for i in range(len(way) + 1))
        return total + sum((emissions[i, tag] for i, tag in enumerate(way)), torch.zeros((), dtype=torch.float64))

    return Ways(length, TAGS, score)


def test_the_search_and_the_sum_are_those_of_every_way_to_tag(given: tuple[Tensor, Tensor, Tensor]):
    steps, emissions, lengths = given
    lattice = Lattice.of(steps, emissions, lengths, beam=TAGS)
    best, log_z, chances = viterbi(lattice), log_partition(lattice), log_chances(steps, emissions, lengths, TAGS).exp()
    for row, length in enumerate(LENGTHS):
        every = ways(steps, emissions[row], length)
        assert best[row].tolist() == every.best + [0] * (4 - length)
        assert torch.allclose(log_z[row], every.log_z, atol=1e-12)
        assert torch.allclose(chances[row, :length], every.chances, atol=1e-12)


def test_a_beam_of_one_follows_the_likeliest_tag_of_each_word(given: tuple[Tensor, Tensor, Tensor]):
    steps, emissions, lengths = given
    found = viterbi(Lattice.of(steps, emissions, lengths, beam=1))
    for row, length in enumerate(LENGTHS):
        assert found[row, :length].tolist() == emissions[row, :length].argmax(-1).tolist()


def test_counts_and_their_interpolation_are_those_of_a_loop():
    sentences = [[0, 1, 2, 1], [0], [], [2, 1, 0], [0, 1, 1]]
    tags, sizes = np.concatenate(sentences).astype(np.int64), np.array([len(one) for one in sentences])
    counts = trigram_counts(tags, sizes, 3)
    lines = [[3, 3, *one, 3] for one in sentences if one]
    expected = Counter(tuple(line[i : i + 3]) for line in lines for i in range(len(line) - 2))
    assert {tuple(map(int, key)): int(counts[tuple(key)]) for key in np.argwhere(counts)} == expected
    pairs, firsts, singles = Counter(), Counter(), Counter()
    for (a, b, c), n in expected.items():
        pairs[b, c] += n
        firsts[a, b] += n
        singles[c] += n
    seconds, total, votes = Counter(), sum(singles.values()), [0, 0, 0]
    for (b, _), n in pairs.items():
        seconds[b] += n
    for (a, b, c), n in expected.items():
        shares = [
            (singles[c] - 1) / (total - 1),
            (pairs[b, c] - 1) / (seconds[b] - 1) if seconds[b] > 1 else 0,
            (n - 1) / (firsts[a, b] - 1) if firsts[a, b] > 1 else 0,
        ]
        votes[int(np.argmax(shares))] += n
    found = interpolation(counts)
    assert found == pytest.approx(np.array(votes) / sum(votes))
    chances = np.exp(log_transitions(counts, found))
    assert chances[3, 3].sum() == pytest.approx(1)
