"""The mean of two losses, and a strength that cross-validation finds, against calculations in the test."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.core.fitted import Nobody
from regard.fitting.classes import HINGE, STRENGTHS, Solving, solve
from regard.fitting.sparse import SparseRows


def dense(x: np.ndarray) -> SparseRows:
    row, column = np.nonzero(x)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(x)))])
    return SparseRows(column, x[row, column], starts, x.shape[1])


def made(n: int = 90, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    labels = chance.integers(n_classes, size=n)
    x = (chance.random((n, 24)) < 0.2 + 0.3 * (np.arange(24) % n_classes == labels[:, None])) * 1.0
    return x, labels


@pytest.mark.parametrize("n_classes", [2, 3])
def test_both_losses_are_the_mean_of_each_at_the_size_of_the_first(n_classes: int):
    x, labels = made(n_classes=n_classes)
    both = solve(dense(x), labels, Solving(n_classes, "both", 5.0, 1e-8, 100), Nobody())
    one = solve(dense(x), labels, Solving(n_classes, "logistic", 5.0, 1e-8, 100), Nobody())
    other = solve(dense(x), labels, Solving(n_classes, "hinge", 5.0 * HINGE, 1e-8, 100), Nobody())
    z, y = (torch.from_numpy(x) @ part.weights + part.bias for part in (one, other))
    size = [float((part - part.mean(1, keepdim=True) if n_classes > 2 else part).abs().mean()) for part in (z, y)]
    found = torch.from_numpy(x) @ both.weights + both.bias
    assert torch.allclose(found, (z + y * size[0] / size[1]) / 2, atol=1e-6)


def test_the_strength_is_the_one_that_answers_most_of_what_it_did_not_see():
    x, labels = made()
    how = Solving(2, "hinge", None, 1e-6, 100)
    found = solve(dense(x), labels, how, Nobody())
    part, right = np.arange(len(x)) % 3, {}
    for strength in STRENGTHS:
        right[strength] = 0
        for fold in range(3):
            inside = part != fold
            one = solve(dense(x[inside]), labels[inside], Solving(2, "hinge", strength, 1e-2, 100), Nobody())
            told = (x[~inside] @ one.weights.numpy() + one.bias.numpy())[:, 0] > 0
            right[strength] += int((told == labels[~inside]).sum())
    assert found.tried == pytest.approx({f"{one:g}": count / len(x) for one, count in right.items()})
    assert right[found.strength] == max(right.values())


def test_copies_of_a_text_are_never_on_both_sides():
    """Nothing is to be learnt of drawn labels: whoever is right more often than by chance has seen the answer."""
    chance = np.random.default_rng(1)
    x, labels = (chance.random((60, 80)) < 0.15) * 1.0, chance.integers(2, size=60)
    how = Solving(2, "hinge", None, 1e-4, 100)
    once = solve(dense(x), labels, how, Nobody()).tried
    thrice = solve(dense(np.repeat(x, 3, 0)), np.repeat(labels, 3), how, Nobody()).tried
    assert max(once.values()) < 0.7
    assert max(thrice.values()) < 0.7
    few = solve(dense(np.repeat(x[:4], 30, 0)), np.repeat(labels[:4], 30), how, Nobody())
    assert few.tried == {}


@pytest.mark.parametrize(("n", "n_classes"), [(3, 3), (4, 2), (30, 1), (24, 24)])
def test_few_texts_and_one_class_give_finite_weights(n: int, n_classes: int):
    x, labels = made(n)[0], np.arange(n) % n_classes
    found = solve(dense(x), labels, Solving(n_classes, "both", None, 1e-4, 100), Nobody())
    assert bool(found.weights.isfinite().all())
    assert bool(found.bias.isfinite().all())
