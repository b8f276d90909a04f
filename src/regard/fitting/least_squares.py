"""Penalised least squares of many targets on the same columns, with the penalty chosen by parts held out in time.

    minimise  |y - X w - b|^2 / 2n + penalty        ridge: lambda |w|^2 / 2        lasso: lambda |w|_1

    X   (n, F) columns, each brought to mean 0 and deviation 1 over all rows; one that never changes is 0 and gets w = 0
    y   (n, H) targets, each with a w of its own; b is free
    G   X^T X / n and c = X^T y / n, both about the means: all that a solver needs, (F, F) and (F, H)

The rows, in the order of time, are cut into blocks. For every lambda the rows outside a block tell what is in it; the
lambda with the least absolute error over all blocks is taken for all rows, and those errors are kept: they are what
quantiles are made of. The normal equations of the rows outside a block are those of all rows less those of the block,
so that no row is read twice. Columns that repeat each other share their weight in ridge, and in lasso the first has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.errors import DataError
from regard.fitting.lasso import LassoPath

PenaltyName = Literal["ridge", "lasso"]
RIDGE = tuple(np.logspace(1, -6, 22).tolist())  # lambda: of columns with deviation 1
LASSO = tuple(np.logspace(0, -4, 33)[1:].tolist())  # of the least lambda that leaves no weight
PATIENCE = 3  # lambdas without improvement after which no smaller one is tried
LEAST_SPREAD = 1e-9  # of a column, by its largest value: below it a column never changes
FEWEST = 2  # rows in a block


@dataclass(frozen=True, eq=False)
class Equations:
    """G (B, F, F), c (B, F, H), the means of X (B, F) and of y (B, H): of all rows first, then without each block."""

    gram: np.ndarray
    cross: np.ndarray
    x_mean: np.ndarray
    y_mean: np.ndarray


@dataclass(frozen=True, eq=False)
class Solution:
    """y = x weights + bias, in the units of the columns as they were given.

    spread    (F,) deviation of each column.
    errors    (n, H) what is missed of each row when its block is held out.
    chosen    lambda, by its place in the path: of ridge itself, of lasso a part of the least that leaves no weight.
    events    of the lasso's paths. converged: whether all of them came to their end.
    """

    weights: np.ndarray
    bias: np.ndarray
    spread: np.ndarray
    errors: np.ndarray
    chosen: float
    events: int = 0
    converged: bool = True


def solve(
    x: np.ndarray,
    y: np.ndarray,
    penalty: PenaltyName = "ridge",
    *,
    blocks: int = 5,
    given: float | None = None,
    judge: Callable[[np.ndarray], np.ndarray] = lambda told: told,
) -> Solution:
    """The weights of (n, F) on (n, H).

    given  a lambda that is taken instead of the one that is found.
    judge  what brings targets and forecasts to the unit in which errors count.
    """
    _refuse_bad(x, y)
    centre, spread = x.mean(0), x.std(0)
    moves = spread > LEAST_SPREAD * np.maximum(np.abs(x).max(0, initial=0.0), 1e-300)
    scale = np.where(moves, spread, 1.0)
    columns = (x - centre) / scale * moves
    bounds = _bounds(len(x), blocks)
    found = _equations(columns, y, bounds)
    lasso = LassoPath(found.gram, found.cross) if penalty == "lasso" else None
    path = (
        _ridge_path(found, RIDGE if given is None else (given,))
        if lasso is None
        else lasso.along(LASSO if given is None else (given,))
    )
    best, least, since = None, np.inf, 0
    for strength, weights in path:
        errors = _held_out(columns, y, bounds, found, weights)
        loss = float(np.abs(judge(y) - judge(y - errors)).mean())
        since = 0 if loss < least else since + 1
        if best is None or loss < least:
            best, least = (strength, weights[0].copy(), errors), loss
        if since >= PATIENCE:
            break
    assert best is not None
    strength, weights, errors = best
    own = weights / scale[:, None] * moves[:, None]
    bias = found.y_mean[0] - (centre + found.x_mean[0] * scale) @ own
    events, converged = (0, True) if lasso is None else (lasso.events, lasso.converged)
    return Solution(own, bias, spread * moves, errors, strength, events, converged)


def _refuse_bad(x: np.ndarray, y: np.ndarray) -> None:
    if len(x) < FEWEST:
        raise DataError(
            f"{len(x)} window{' is' if len(x) == 1 else 's are'} too few to fit a weight to; give a longer series"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("not all values are finite numbers of 32 bits; look for values that are too large to be true")


def _bounds(n: int, blocks: int) -> list[tuple[int, int]]:
    """Blocks of rows one after the other."""
    count = max(2, min(blocks, n // FEWEST))
    ends = [n * number // count for number in range(count + 1)]
    return list(itertools.pairwise(ends))


def _equations(x: np.ndarray, y: np.ndarray, bounds: list[tuple[int, int]]) -> Equations:
    """The normal equations of all rows, and of those outside each block."""
    sums = [(b - a, x[a:b].sum(0), y[a:b].sum(0), x[a:b].T @ x[a:b], x[a:b].T @ y[a:b]) for a, b in bounds]
    total = tuple(sum(part[1:], part[0]) for part in zip(*sums, strict=True))
    made = []
    for block in (None, *sums):
        n, x_sum, y_sum, xx, xy = total if block is None else (a - b for a, b in zip(total, block, strict=True))
        x_mean, y_mean = x_sum / n, y_sum / n
        made.append((xx / n - np.outer(x_mean, x_mean), xy / n - np.outer(x_mean, y_mean), x_mean, y_mean))
    return Equations(*(np.stack(part) for part in zip(*made, strict=True)))


def _ridge_path(found: Equations, strengths: tuple[float, ...]) -> Iterator[tuple[float, np.ndarray]]:
    """w = V (V^T c) / (e + lambda), G = V e V^T: one decomposition serves every lambda. (B, F, H)."""
    values, vectors = np.linalg.eigh(found.gram)
    values = np.maximum(values, 0.0)[..., None]
    turned = vectors.transpose(0, 2, 1) @ found.cross
    for strength in strengths:
        yield strength, vectors @ (turned / (values + strength))


def _held_out(
    x: np.ndarray, y: np.ndarray, bounds: list[tuple[int, int]], found: Equations, weights: np.ndarray
) -> np.ndarray:
    """y less what the rows outside its block say of it, (n, H)."""
    errors = np.empty_like(y)
    for number, (a, b) in enumerate(bounds, 1):
        errors[a:b] = y[a:b] - found.y_mean[number] - (x[a:b] - found.x_mean[number]) @ weights[number]
    return errors
