"""The lexicon of IBM Model 1 against the enumeration of every alignment, in float64."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from regard.fitting import lexicon
from regard.fitting.lexicon import Texts, expectation_maximisation
from regard.fitting.translations import Translations

N_SOURCE, N_TARGET = 5, 4
END = N_SOURCE - 1
PAIRS = [([0, 1, END], [0, 1]), ([0, 2, END], [0, 2]), ([2, END], [2]), ([1, 3, 0, END], [1, 0, 0]), ([END], [])]


def texts(rows: list[list[int]]) -> Texts:
    return Texts(np.array(list(itertools.chain(*rows))), np.concatenate([[0], np.cumsum([len(row) for row in rows])]))


def fitted(iterations: int, memory: int = 1 << 20) -> lexicon.Lexicon:
    source, target = (texts([list(pair[side]) for pair in PAIRS]) for side in (0, 1))
    return expectation_maximisation(source, target, N_SOURCE, N_TARGET, iterations, memory)


def table(found: lexicon.Lexicon) -> np.ndarray:
    t = np.zeros((N_SOURCE, N_TARGET))
    for x in range(N_SOURCE):
        entries = slice(found.first[x], found.first[x + 1])
        t[x, found.words[entries]] = found.t[entries]
    return t


def enumerated(iterations: int) -> tuple[np.ndarray, list[float]]:
    """The same by going through every alignment of every pair."""
    t, likelihoods = np.full((N_SOURCE, N_TARGET), 1 / N_TARGET), []
    for _ in range(iterations):
        counts, total = np.zeros_like(t), 0.0
        for source, target in PAIRS:
            ways = itertools.product(range(len(source)), repeat=len(target))
            links = [list(zip(way, target, strict=True)) for way in ways]
            chance = [math.prod(t[source[j], y] / len(source) for j, y in way) for way in links]
            total += math.log(sum(chance))
            for way, p in zip(links, chance, strict=True):
                for j, y in way:
                    counts[source[j], y] += p / sum(chance)
        likelihoods.append(total)
        t = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    return t, likelihoods


@pytest.mark.parametrize("iterations", [1, 2, 6])
def test_the_lexicon_is_that_of_every_alignment_enumerated(iterations: int):
    found, (t, likelihoods) = fitted(iterations), enumerated(iterations)
    assert np.allclose(table(found), t, atol=1e-12)
    assert np.allclose(found.log_likelihood[:-1], likelihoods, atol=1e-10)


def test_the_likelihood_never_falls():
    chance = np.random.default_rng(3)
    rows = [
        (chance.integers(30, size=chance.integers(1, 9)), chance.integers(20, size=chance.integers(9)))
        for _ in range(60)
    ]
    source, target = (texts([row[side].tolist() for row in rows]) for side in (0, 1))
    found = expectation_maximisation(source, target, 30, 20, 12, 1 << 20).log_likelihood
    assert (np.diff(found) >= -1e-9).all()
    assert found[-1] > found[0]


def test_parts_of_the_pairs_and_all_at_once_are_the_same(monkeypatch: pytest.MonkeyPatch):
    whole = fitted(4)
    monkeypatch.setattr(lexicon, "AT_ONCE", 3)
    for memory in (0, 1 << 20):
        parts = fitted(4, memory)
        assert np.allclose(parts.t, whole.t, atol=1e-14)
        assert np.array_equal(parts.words, whole.words)


def test_fertility_is_how_many_words_each_brings():
    found = fitted(8)
    occurs = np.bincount(list(itertools.chain(*(pair[0] for pair in PAIRS))), minlength=N_SOURCE)
    assert float((found.fertility * occurs).sum()) == pytest.approx(sum(len(pair[1]) for pair in PAIRS))


def test_what_is_pruned_leaves_a_distribution():
    found = fitted(3).pruned(0.1)
    sums = table(found).sum(1)
    assert np.allclose(sums[sums > 0], 1)
    assert (found.t >= 0.1).all()


def test_translations_are_the_table_as_tensors():
    found, t = fitted(3), torch.from_numpy(table(fitted(3)))
    first, words_met, own_t = (torch.from_numpy(np.asarray(part)) for part in (found.first, found.words, found.t))
    own = Translations(first, words_met, own_t, N_TARGET)
    source, words = torch.tensor([[0, 2, END], [3, END, -1]]), torch.tensor([[1, 0], [2, N_TARGET - 1]])
    weights = torch.rand(2, 2, 3, dtype=torch.float64)
    known = torch.where((source >= 0)[..., None], t[source.clamp(min=0)], 0.0)  # (B, S, V)
    assert torch.allclose(own.expected(source, weights), weights @ known)
    assert torch.equal(own.of(words, source), known.transpose(1, 2)[torch.arange(2)[:, None], words])
    posterior = own.posterior(words, source)
    assert torch.allclose(posterior.sum(-1), torch.ones(2, 2, dtype=torch.float64))
    assert posterior[1, 1].tolist() == [0, 1, 0]  # the end comes from the end
