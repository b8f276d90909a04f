"""Chances beside what came true: bins and their error counted by hand, and the temperature beside that of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.calibration import best_temperature, calibration_error, log_loss, reliability, tempered


def drawn(n: int, classes: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and labels that are drawn from their softmax; the logits then made sharper than the truth."""
    random = np.random.default_rng(seed)
    z = random.normal(0, 1.5, (n, classes))
    chances = np.exp(tempered(z, 1.0))
    labels = np.array([random.choice(classes, p=one) for one in chances])
    return sharpness * z, labels


def test_bins_and_their_error_worked_by_hand():
    bins = reliability([0.52, 0.50, 0.98, 1.0, 0.97], [True, False, True, True, False])
    assert [(one.count, one.accuracy) for one in bins] == [(2, 0.5), (3, pytest.approx(2 / 3))]
    assert [one.confidence for one in bins] == [pytest.approx(0.51), pytest.approx(2.95 / 3)]
    assert calibration_error(bins) == pytest.approx(2 / 5 * 0.01 + 3 / 5 * (2.95 / 3 - 2 / 3))
    assert bins[0].to_row() == {"bin": "0.47-0.53", "confidence": pytest.approx(0.51), "accuracy": 0.5, "count": 2}


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_every_answer_is_in_one_bin_that_holds_its_confidence(pairs: list[tuple[float, bool]]):
    bins = reliability([sure for sure, _ in pairs], [right for _, right in pairs])
    assert sum(one.count for one in bins) == len(pairs)
    assert all(one.low - 1e-9 <= one.confidence <= one.high + 1e-9 for one in bins)
    assert 0 <= calibration_error(bins) <= 1


@pytest.mark.parametrize("sharpness", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_temperature_is_the_minimum_that_torch_finds(sharpness: float, classes: int):
    logits, labels = drawn(400, classes, sharpness)
    z, y = torch.from_numpy(logits), torch.from_numpy(labels)
    inverse = torch.ones((), dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS(
        [inverse], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        solver.zero_grad()
        found = F.cross_entropy(z * inverse, y, label_smoothing=1 / (len(y) + 2))
        found.backward()
        return found

    solver.step(loss)
    found = best_temperature(logits, labels)
    assert found == pytest.approx(1 / float(inverse.detach()), rel=1e-5)
    assert found == pytest.approx(sharpness, rel=0.25)  # as the labels were drawn
    assert log_loss(logits, labels, found) <= log_loss(logits, labels) + 1e-4
    assert (tempered(logits, found).argmax(-1) == logits.argmax(-1)).all()


def test_answers_that_are_all_right_are_not_taken_for_certain():
    logits = np.tile([[2.0, 0.0]], (100, 1))
    chance = np.exp(tempered(logits, best_temperature(logits, np.zeros(100, np.int64))))[0, 0]
    assert chance == pytest.approx(1 - 1 / 102 / 2)
