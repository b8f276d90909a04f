"""A forecaster has the second level that was asked for, or says why it cannot have it."""

from __future__ import annotations

from typing import Any

import pytest

from regard.core.data_spec import DataSpec
from regard.core.registry import entry
from regard.errors import UsageError
from regard.fitting.windows import CALENDAR


def config(weeks: int, **settings: Any) -> Any:
    """That of a forecaster of hours that reads so many weeks."""
    spec = DataSpec(horizon=24, history=weeks * 168, season=24, n_known=CALENDAR, n_channels=1 + CALENDAR)
    return entry("forecaster").config(spec, "tiny", **settings)


def test_where_nothing_is_said_a_second_level_reaches_as_far_as_the_history_does():
    assert [config(weeks).far for weeks in (1, 2, 3, 4, 8)] == [0, 14, 21, 28, 28]
    assert config(4, level=28).far == config(4, linear=28).far == 0


def test_what_is_said_is_what_the_model_has():
    assert config(2, far=14).far == config(4, far=14).far == 14
    assert config(1, far=0).far == config(4, far=0).far == 0


@pytest.mark.parametrize(
    ("weeks", "said", "told"),
    [
        (
            1,
            {"far": 14},
            r"model\.far: .* 14 seasons needs a data\.history of more than 168 steps, best 336, and .* 168",
        ),
        (4, {"far": 3}, r"model\.far: expected more than the 7 seasons of the first level, or 0, found 3"),
        (4, {"far": 20, "linear": 21}, r"model\.far: expected more than the 21 seasons"),
        (4, {"far": -5}, "far counts seasons, 0 for no second level, found -5"),
        (1, {"far": -5}, "far counts seasons"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(weeks: int, said: dict[str, int], told: str):
    with pytest.raises(UsageError, match=told):
        config(weeks, **said)
