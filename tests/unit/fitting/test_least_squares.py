"""Ridge and lasso with a penalty that is found: against loops, scikit-learn and the conditions of their minima."""

from __future__ import annotations

import numpy as np
import pytest

from regard.errors import DataError
from regard.fitting.lasso import LassoPath
from regard.fitting.least_squares import RIDGE, solve


def made_up(n: int = 60, columns: int = 8, targets: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    x = chance.standard_normal((n, columns)) * np.linspace(0.1, 10, columns) + 3
    x[:, 1] += 0.1 * x[:, 0]
    y = x[:, :3] @ chance.standard_normal((3, targets)) + 0.5 * chance.standard_normal((n, targets)) + 7
    return x, y


def standardised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(0)) / x.std(0)


def test_ridge_is_the_solution_of_the_normal_equations():
    x, y = made_up()
    found, z = solve(x, y, given=0.3), standardised(x)
    w = np.linalg.solve(z.T @ z / len(z) + 0.3 * np.eye(z.shape[1]), z.T @ (y - y.mean(0)) / len(z))
    assert np.allclose(found.weights, w / x.std(0)[:, None], atol=1e-10)
    assert np.allclose(x @ found.weights + found.bias, z @ w + y.mean(0), atol=1e-10)


def test_ridge_is_that_of_scikit_learn():
    kind = pytest.importorskip("sklearn.linear_model").Ridge
    x, y = made_up()
    theirs = kind(alpha=0.3 * len(x)).fit(standardised(x), y)
    assert np.allclose(
        x @ solve(x, y, given=0.3).weights + solve(x, y, given=0.3).bias, theirs.predict(standardised(x))
    )


@pytest.mark.parametrize("part", [0.5, 0.05, 0.001])
def test_lasso_is_that_of_scikit_learn(part: float):
    kind = pytest.importorskip("sklearn.linear_model").Lasso
    x, y = made_up()
    found, z = solve(x, y, "lasso", given=part), standardised(x)
    for h in range(y.shape[1]):
        largest = np.abs(z.T @ (y[:, h] - y[:, h].mean())).max() / len(z)
        theirs = kind(alpha=part * largest, tol=1e-12, max_iter=100_000).fit(z, y[:, h])
        assert np.allclose(found.weights[:, h] * x.std(0), theirs.coef_, atol=1e-7)
    assert found.converged


@pytest.mark.parametrize("seed", range(5))
def test_lasso_meets_the_conditions_of_a_minimum_all_along_its_path(seed: int):
    x, y = made_up(n=25, columns=40, targets=2, seed=seed)  # more columns than rows
    z, t = standardised(x), y - y.mean(0)
    gram, cross = z.T @ z / len(z), z.T @ t / len(z)
    path = LassoPath(gram[None], cross[None])
    for part, weights in path.along((0.9, 0.5, 0.1, 0.02, 0.005)):
        w, strength = weights[0], part * np.abs(cross).max(0)
        rest = cross - gram @ w
        assert np.all(np.abs(rest) <= strength * (1 + 1e-6))
        used = w != 0
        assert np.allclose(rest[used], (strength * np.sign(w))[used], rtol=1e-6)
    assert path.converged
    assert path.events > 10


def test_the_errors_are_those_of_blocks_that_the_weights_did_not_see():
    x, y = made_up()
    found, z = solve(x, y, given=0.2, blocks=4), standardised(x)
    for a, b in ((0, 15), (15, 30), (30, 45), (45, 60)):
        inside = np.r_[0:a, b:60]
        centre, mean = z[inside].mean(0), y[inside].mean(0)
        own = z[inside] - centre
        w = np.linalg.solve(own.T @ own / 45 + 0.2 * np.eye(8), own.T @ (y[inside] - mean) / 45)
        assert np.allclose(found.errors[a:b], y[a:b] - mean - (z[a:b] - centre) @ w, atol=1e-9)


def test_the_penalty_with_the_least_held_out_error_is_taken():
    x, y = made_up()
    losses = {strength: np.abs(solve(x, y, given=strength).errors).mean() for strength in RIDGE}
    assert solve(x, y).chosen == min(losses, key=losses.__getitem__)
    noise = np.random.default_rng(1).standard_normal((60, 1))
    assert solve(x, noise, "lasso").chosen > 0.3  # nothing to find: next to no weights


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_constant_and_repeated_columns_do_no_harm(penalty):
    x, y = made_up()
    plain = solve(x, y, penalty, given=0.01)
    wider = np.concatenate([x, np.full((60, 1), 5.0), x[:, :1], np.full((60, 1), 1e9)], 1)
    found = solve(wider, y, penalty, given=0.01)
    assert np.isfinite(found.weights).all()
    assert not found.weights[[8, 10]].any()
    told, expected = (a @ one.weights + one.bias for a, one in ((wider, found), (x, plain)))
    # Two columns that are one have a smaller square together, so that ridge keeps them a little larger.
    assert np.allclose(told, expected, atol=1e-6 if penalty == "lasso" else 0.05)


def test_columns_that_never_change_leave_the_mean():
    found = solve(np.ones((10, 3)), np.arange(10.0)[:, None], "lasso")
    assert not found.weights.any()
    assert found.bias == pytest.approx([4.5])


def test_a_path_that_is_given_up_says_so(monkeypatch: pytest.MonkeyPatch):
    x, y = made_up(n=25, columns=40)
    monkeypatch.setattr("regard.fitting.lasso.EVENTS", 0)
    assert not solve(x, y, "lasso", given=1e-4).converged


def test_what_cannot_be_solved_is_refused():
    x, y = made_up()
    with pytest.raises(DataError, match="finite"):
        solve(np.where(x > 5, np.nan, x), y)
    with pytest.raises(DataError, match="too few"):
        solve(x[:1], y[:1])
