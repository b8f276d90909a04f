"""Scalers: invertible, deaf to outliers, the same after JSON."""

from __future__ import annotations

import json
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.scaler import Scaler
from regard.errors import DataError

COLUMNS = st.lists(st.tuples(*[st.floats(-1e4, 1e4)] * 2), min_size=1, max_size=40).map(np.array)


@given(values=COLUMNS, asinh=st.booleans())
def test_what_is_scaled_can_be_scaled_back(values, asinh):
    scaler = Scaler.fit(values, asinh=asinh)
    # sinh(asinh(z)) loses relative precision of z, which is large where quartiles are close together.
    tolerance = 1e-9 * (1 + np.abs(values).max() + scaler.scale.max())
    np.testing.assert_allclose(scaler.invert(scaler.apply(values)), values, atol=tolerance, rtol=1e-9)
    again = Scaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    np.testing.assert_array_equal(again.apply(values), scaler.apply(values))


def test_a_normal_distribution_gets_mean_zero_and_deviation_one():
    exact = np.array([NormalDist(50, 7).inv_cdf((i + 0.5) / 10_001) for i in range(10_001)])
    scaler = Scaler.fit(exact)
    assert scaler.centre == pytest.approx(50)
    assert scaler.scale == pytest.approx(7, rel=1e-3)
    assert Scaler.fit(exact, asinh=True).apply(np.array(50 + 7 * np.sinh(1))) == pytest.approx(1, rel=1e-3)


def test_one_spike_moves_nothing():
    values = np.arange(100.0)
    spiked = np.append(values[:-1], 1e6)
    assert Scaler.fit(spiked).to_dict() == Scaler.fit(values).to_dict()


def test_columns_that_hardly_change_keep_a_scale():
    steps = np.zeros((100, 2))
    steps[:10, 1] = 3.0
    scaler = Scaler.fit(steps)
    assert scaler.scale.tolist() == pytest.approx([1.0, 3 * (0.1 * 0.9) ** 0.5])


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf]])
def test_values_that_cannot_be_scaled_by_are_refused(values):
    with pytest.raises(DataError, match="a scaler needs values"):
        Scaler.fit(np.array(values))
