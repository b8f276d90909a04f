"""The solver finds the minimum, to the gradient it states, and says where it does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from regard.fitting.linear import LinearPoint, LossName, examples
from regard.fitting.newton import minimise
from regard.fitting.sparse import SparseRows


def made_up(
    n: int = 60, width: int = 9, n_classes: int = 3, seed: int = 0
) -> tuple[np.ndarray, SparseRows, np.ndarray]:
    """A dense matrix with many zeros, the same as sparse rows, and classes."""
    chance = np.random.default_rng(seed)
    dense = chance.normal(size=(n, width)) * (chance.random((n, width)) < 0.4)
    row, column = np.nonzero(dense)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    return dense, SparseRows(column, dense[row, column], starts, width), chance.integers(n_classes, size=n)


def objective(dense: np.ndarray, labels: np.ndarray, weights: torch.Tensor, loss: str, strength: float, n_classes: int):
    """|W|^2 / 2 + C sum loss, written out."""
    z = torch.from_numpy(dense) @ weights[:-1] + weights[-1]
    total = 0.5 * (weights[:-1] ** 2).sum()
    for i, label in enumerate(labels):
        signs = torch.tensor([1.0 if c == label else -1.0 for c in range(n_classes)][n_classes == 2 :])
        if loss == "hinge":
            total = total + strength * (1 - signs * z[i]).clamp_min(0).square().sum()
        elif n_classes == 2:
            total = total + strength * torch.log1p(torch.exp(-signs[0] * z[i, 0]))
        else:
            total = total - strength * (z[i, label] - z[i].exp().sum().log())
    return total


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_of_the_written_out_objective_is_zero_at_the_minimum(loss: LossName, n_classes: int):
    dense, rows, labels = made_up(n_classes=n_classes)
    of = examples(rows, torch.from_numpy(labels), n_classes, loss, 2.0)
    found = minimise(LinearPoint.zero(of), 1e-9, 100)
    assert found.converged
    assert isinstance(found.point, LinearPoint)
    weights = found.point.weights.clone().requires_grad_()
    value = objective(dense, labels, weights, loss, 2.0, n_classes)
    (gradient,) = torch.autograd.grad(value, weights)
    assert found.point.value() == pytest.approx(float(value.detach()))
    assert float(gradient.norm()) < 1e-6


def test_curvature_is_the_derivative_of_the_gradient():
    _, rows, labels = made_up()
    of = examples(rows, torch.from_numpy(labels), 3, "logistic", 1.0, torch.rand(9, 3, dtype=torch.float64))
    torch.manual_seed(0)
    v = torch.randn(10, 3, dtype=torch.float64)
    at = LinearPoint.zero(of).along(torch.randn(10, 3, dtype=torch.float64))(1.0)
    moved = [at.along(v)(a).gradient() for a in (1e-6, -1e-6)]
    assert torch.allclose((moved[0] - moved[1]) / 2e-6, at.curvature(v), rtol=1e-5, atol=1e-6)


def test_too_few_steps_do_not_count_as_convergence():
    _, rows, labels = made_up()
    of = examples(rows, torch.from_numpy(labels), 3, "logistic", 100.0)
    found = minimise(LinearPoint.zero(of), 1e-9, 1)
    assert not found.converged
    assert found.steps == 1
    assert 1e-9 < found.gradient < math.inf


def test_the_same_data_gives_the_same_weights_to_the_last_bit():
    def weights() -> torch.Tensor:
        _, rows, labels = made_up(n=400, width=50)
        found = minimise(LinearPoint.zero(examples(rows, torch.from_numpy(labels), 3, "hinge", 1.0)), 1e-6, 100)
        assert isinstance(found.point, LinearPoint)
        return found.point.weights

    assert torch.equal(weights(), weights())


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_finds_what_scikit_learn_finds(loss: LossName, n_classes: int):
    linear_model, svm = pytest.importorskip("sklearn.linear_model"), pytest.importorskip("sklearn.svm")
    dense, rows, labels = made_up(n=200, width=12, n_classes=n_classes)
    of = examples(rows, torch.from_numpy(labels), n_classes, loss, 0.7)
    found = minimise(LinearPoint.zero(of), 1e-9, 200)
    assert isinstance(found.point, LinearPoint)
    if loss == "logistic":
        peer = linear_model.LogisticRegression(C=0.7, tol=1e-10, max_iter=5000).fit(dense, labels)
        weights, bias = found.point.weights[:-1].T, found.point.weights[-1]
        assert np.allclose(weights, peer.coef_, atol=1e-4)
        assert np.allclose(
            bias - bias.mean() * (n_classes > 2), peer.intercept_ - peer.intercept_.mean() * (n_classes > 2), atol=1e-4
        )
    else:
        # liblinear keeps its bias small too; scaled up, it is all but free.
        peer = svm.LinearSVC(C=0.7, tol=1e-10, dual=False, intercept_scaling=1000, max_iter=20000).fit(dense, labels)
        assert np.allclose(found.point.weights[:-1].T, peer.coef_, atol=1e-3)
