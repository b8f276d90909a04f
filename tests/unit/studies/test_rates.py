"""The search for a learning rate: three around the model's own, and one further out where the best is at the edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.errors import NumericError
from regard.studies.comparison import Comparison
from regard.studies.entrant import read_entrant
from regard.studies.protocol import Protocol
from regard.studies.race import Race, Row
from regard.studies.report import as_html
from regard.studies.summary import notes
from regard.training import budget

OWN = 0.01


def searched(best: float, text: str = "60s", diverges: float = 1.0) -> tuple[Row, list[str]]:
    """A search in which the loss grows with the distance from `best`, and what was trained for it."""
    race: Any = object.__new__(Race)
    race.protocol = Protocol("x", "text", text, 1)
    made: list[str] = []

    def trained(_row: Row, name: str, told: str, _ends: object, changes: dict[str, Any]) -> dict[str, Any]:
        made.append(told)
        assert changes["train.budget"] == race.protocol.trial_budget
        if changes["train.lr"] > diverges:
            raise NumericError("the loss is nan")
        return {"valid": abs(changes["train.lr"] - best)}

    race._made = trained
    row = Row("lstm", "lstm", 5)
    race._search(row, OWN)
    return row, made


def test_a_best_rate_in_the_middle_is_taken_as_it_is():
    row, made = searched(OWN)
    assert (row.lr, row.on_edge, len(made)) == (OWN, False, 3)


@pytest.mark.parametrize(("best", "rate"), [(0.03, 0.03), (0.0033, 0.0033)])
def test_one_rate_further_out_takes_the_star_away(best: float, rate: float):
    row, made = searched(best)
    assert (row.lr, row.on_edge) == (rate, False)
    assert made == ["rate 1 of 3", "rate 2 of 3", "rate 3 of 3", "one rate further"]
    assert [lr for lr, _ in row.rates] == sorted(lr for lr, _ in row.rates)


@pytest.mark.parametrize(("best", "rate"), [(0.5, 0.09), (0.0001, 0.0011)])
def test_a_rate_at_the_edge_all_the_same_is_starred_and_the_next_one_named(best: float, rate: float):
    row, made = searched(best)
    assert (row.lr, row.on_edge, len(made)) == (rate, True, 4)
    compared = Comparison(Protocol("x", "text", "60s", 1), (row,), Path("c"))
    told = notes(compared)
    named = next(note for note in told if note.startswith("*")).rpartition("--models ")[2].strip("'")
    assert f"{rate:g}: {abs(rate - best):.4g} taken*" in as_html(compared)
    further = read_entrant(named).changes["train.lr"].value
    assert further == pytest.approx(rate * 3 if best > rate else rate / 3, rel=0.1)


def test_a_rate_that_diverges_beyond_the_edge_is_the_edge():
    row, _ = searched(0.05, diverges=0.04)
    assert (row.lr, row.on_edge) == (0.03, False)
    assert row.rates[-1] == (0.09, None)


@pytest.mark.parametrize("text", ["60s", "12steps", "24steps", "3Mtokens", "1e12flops"])
def test_the_search_spends_no_more_than_its_quarter(text: str):
    protocol = Protocol("x", "text", text, 1)
    _, made = searched(0.03, text)
    whole, trial = budget.parse(text).amount, budget.parse(protocol.trial_budget).amount
    assert len(made) * trial <= whole / 4 * 1.000001
    assert len(made) == (4 if protocol.may_extend else 3)
    assert budget.parse(protocol.main_budget).amount == pytest.approx(0.75 * whole)
