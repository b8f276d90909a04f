"""The search for a learning rate: outward from the model's own until both neighbours are worse."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from regard.studies.chain import Trial, rate_search
from regard.studies.comparison import Comparison
from regard.studies.entrant import read_entrant
from regard.studies.notes import notes
from regard.studies.protocol import Protocol
from regard.studies.report_page import as_html
from regard.studies.row import Row
from regard.studies.search import Behind, Searched, Watched
from regard.studies.training import BEHIND, DIVERGED
from regard.training import budget
from regard.training.display import Evaluation, Silent

OWN = 0.01


def searched(best: float, text: str = "60s", diverges: float = 1e9, ended: float = 1.0) -> tuple[Row, list[float]]:
    """A search in which the loss grows with the distance from `best`, and the rates that were trained for it.

    ended  the part of its budget that a training spends when another was better before it.
    """
    protocol = Protocol("x", "text", text, 1)
    trial = budget.parse(protocol.trial_budget)
    made: list[float] = []

    def trained(asked: Trial) -> dict[str, Any]:
        lr = asked.changes["train.lr"]
        assert asked.changes["train.budget"] == protocol.trial_budget
        loss = None if lr > diverges else abs(lr - best)
        is_behind = bool(asked.best) and (loss is None or loss > min(asked.best)) and ended < 1
        made.append(lr)
        spent = trial.amount * (ended if is_behind else 1.0)
        reason = DIVERGED if loss is None else BEHIND if is_behind else "budget"
        curve = [] if loss is None else [{"valid_loss": loss}]
        return {"valid": loss, "reason": reason, "seconds": spent, "step": spent, "curve": curve}

    row = Row("lstm", "lstm", 5)
    steps = rate_search(row, protocol, OWN)
    with suppress(StopIteration):
        asked = next(steps)
        while True:
            asked = steps.send([trained(one) for one in asked])
    return row, made


@pytest.mark.parametrize("best", [0.00037, 0.0011, 0.0033, 0.01, 0.03, 0.09, 0.27])
def test_a_rate_between_two_that_are_worse_bears_no_star(best: float) -> None:
    row, made = searched(best)
    assert (row.lr, row.on_edge) == (pytest.approx(best, rel=0.1), False)
    place = [lr for lr, _ in row.rates].index(row.lr)
    assert 0 < place < len(row.rates) - 1
    assert [lr for lr, _ in row.rates] == sorted(made)
    told = notes(Comparison(Protocol("x", "text", "60s", 1), (row,), Path("c")))
    assert not any("*" in note for note in told)


def test_a_best_rate_in_the_middle_takes_three_trainings() -> None:
    assert searched(OWN)[1] == [OWN, 0.03, 0.0033]


@pytest.mark.parametrize(("best", "rate"), [(99.0, 2.4), (0.00001, 0.00012)])
def test_a_rate_that_could_not_be_bracketed_is_starred_and_the_next_one_named(best: float, rate: float) -> None:
    row, made = searched(best)
    assert (row.lr, row.on_edge, len(made)) == (rate, True, 6)
    compared = Comparison(Protocol("x", "text", "60s", 1), (row,), Path("c"))
    named = next(note for note in notes(compared) if note.startswith("*")).rpartition("--models ")[2].strip("'")
    assert f"{rate:g}: {abs(rate - best):.4g} taken*" in as_html(compared)
    further = read_entrant(named).changes["train.lr"].value
    assert further == pytest.approx(rate * 3 if best > rate else rate / 3, rel=0.1)


def test_a_rate_that_diverges_is_a_neighbour_that_is_worse() -> None:
    row, _ = searched(0.05, diverges=0.04)
    assert (row.lr, row.on_edge) == (0.03, False)
    assert row.rates[-1] == (0.09, None)


def test_where_the_own_rate_diverges_lower_ones_are_tried() -> None:
    row, made = searched(0.0011, diverges=0.005)
    assert (row.lr, row.on_edge) == (0.0011, False)
    assert made == [0.01, 0.0033, 0.0011, 0.00037]


@pytest.mark.parametrize("text", ["60s", "12steps", "24steps", "240steps", "3Mtokens", "1e12flops"])
@pytest.mark.parametrize("best", [1e9, 1e-9, 0.03])
def test_the_search_spends_no_more_than_its_quarter(text: str, best: float) -> None:
    protocol = Protocol("x", "text", text, 1)
    _, made = searched(best, text)
    whole, trial = budget.parse(text).amount, budget.parse(protocol.trial_budget).amount
    assert len(made) * trial <= whole / 4 * 1.000001
    assert budget.parse(protocol.main_budget).amount == pytest.approx(0.75 * whole)


def test_what_a_training_did_not_spend_is_left_for_another() -> None:
    row, made = searched(OWN / 3**4, ended=0.0)
    assert (len(made), row.on_edge) == (7, False)
    row, made = searched(OWN / 3**4)
    assert (len(made), row.on_edge) == (6, True)


def test_in_a_few_steps_no_rate_is_sought() -> None:
    protocol = Protocol("x", "text", "8steps", 1)
    assert not protocol.searches
    assert protocol.main_budget == "8steps"


def test_of_equal_losses_the_own_rate_is_taken() -> None:
    found = Searched(OWN)
    while found.next is not None:
        found.losses[found.next] = 1.0
    assert (found.best, found.next, len(found.losses)) == (0, None, 3)


def at(loss: float, step: int = 5) -> Evaluation:
    return Evaluation(step, loss, loss, True, 9, 0.1, None)


def test_a_training_that_is_behind_half_way_is_ended() -> None:
    ahead = Watched(Silent(), [3.0, 2.0, 1.5, 1.2])
    for loss in (3.5, 2.01, 1.4, 9.0):
        ahead.evaluated(at(loss))
    behind = Watched(Silent(), [3.0, 2.0, 1.5, 1.2])
    behind.evaluated(at(9.0))
    with pytest.raises(Behind, match="step 7"):
        behind.evaluated(at(2.2, 7))
    early = Watched(Silent(), [9.0 - place for place in range(8)])
    for _ in range(3):
        early.evaluated(at(99.0))
    with pytest.raises(Behind):
        early.evaluated(at(99.0))
    first = Watched(Silent(), [])
    for _ in range(5):
        first.evaluated(at(9.0))
