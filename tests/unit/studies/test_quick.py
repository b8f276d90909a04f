"""Studies in their quick form: none may fail, whatever its verdict.

The same few run every time, so that what is red today is red tomorrow: worked numbers, a timing, a training of the
study's own, and runs of a task. `REGARD_STUDIES=all` runs every study, which takes some minutes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regard.studies import reproduce

FEW = ("query", "matrix", "order", "electricity")
CHOSEN = reproduce.names() if os.environ.get("REGARD_STUDIES") == "all" else FEW


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", CHOSEN)
def test_a_quick_study_comes_to_a_verdict(name: str, tmp_path: Path) -> None:
    (found,) = reproduce.reproduce([name], "quick", out=tmp_path)
    assert found.outcome in ("holds", "does not hold", "not settled"), (name, found.reason)
    assert found.figure.startswith("<svg")
    again = reproduce.saved(tmp_path / f"{name}.json", "quick")
    assert again is not None
    assert again.reason == found.reason


def test_no_test_asks_what_day_it_is() -> None:
    asking = ("date." + "today(", "datetime." + "now(", "utc" + "now(")
    files = [file for file in Path(__file__).parents[2].rglob("*.py") if any(a in file.read_text() for a in asking)]
    assert files == []
