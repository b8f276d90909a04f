"""Some studies in their quick form, others tomorrow: none may fail, whatever its verdict."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from regard.studies import reproduce

A_DAY = 3
TODAY = datetime.date.today().toordinal()  # any day will do
NAMES = reproduce.names()


@pytest.mark.parametrize("turn", range(min(A_DAY, len(NAMES))))
def test_the_studies_of_the_day_come_to_a_verdict(turn: int, tmp_path: Path) -> None:
    name = NAMES[(A_DAY * TODAY + turn) % len(NAMES)]
    (found,) = reproduce.reproduce([name], "quick", out=tmp_path)
    assert found.outcome in ("holds", "does not hold", "not settled"), (name, found.reason)
    assert found.figure.startswith("<svg")
    again = reproduce.saved(tmp_path / f"{name}.json", "quick")
    assert again is not None
    assert again.reason == found.reason
