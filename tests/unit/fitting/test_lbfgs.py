"""L-BFGS on functions whose minimum is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.fitting.lbfgs import minimise


def bowl(n: int = 50) -> tuple[Tensor, Tensor]:
    torch.manual_seed(2)
    a = torch.randn(n, n, dtype=torch.float64)
    return a @ a.T + 0.1 * torch.eye(n, dtype=torch.float64), torch.randn(n, dtype=torch.float64)


def test_the_minimum_of_a_quadratic_is_that_of_its_equations():
    a, b = bowl()
    found = minimise(lambda x: (float(x @ a @ x / 2 - b @ x), a @ x - b), torch.zeros_like(b), 1e-12, 2000)
    assert found.converged
    assert torch.allclose(found.x, torch.linalg.solve(a, b), atol=1e-3)
    again = minimise(lambda x: (float(x @ a @ x / 2 - b @ x), a @ x - b), torch.zeros_like(b), 1e-12, 2000)
    assert torch.equal(found.x, again.x)


def test_too_few_steps_are_told():
    a, b = bowl()
    found = minimise(lambda x: (float(x @ a @ x / 2 - b @ x), a @ x - b), torch.zeros_like(b), 1e-12, 3)
    assert (found.steps, found.converged) == (3, False)


def test_a_minimum_at_the_start_needs_no_step():
    found = minimise(lambda x: (float(x @ x), 2 * x), torch.zeros(4, dtype=torch.float64), 1e-6, 10)
    assert (found.steps, found.calls, found.converged) == (0, 1, True)


def test_a_step_to_what_is_no_number_is_shortened():
    def wall(x: Tensor) -> tuple[float, Tensor]:
        return (float("-inf"), x * float("nan")) if float(x) > 0.5 else (-1e3 * float(x), torch.full_like(x, -1e3))

    found = minimise(wall, torch.zeros(1, dtype=torch.float64), 1e-6, 5)
    assert 0 < float(found.x) <= 0.5
    assert found.value == pytest.approx(-1e3 * float(found.x))
