"""The counts of both sides of a gap: those of the text, and the sum that the model answers by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.explain.registry import view, views
from regard.tasks.filling import MASK

LINES = ["the cat sat here", "the cat sat there", "the dog sat here", "a cat ran here", "the cow ran there"]
TIMES = 40


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    here = tmp_path_factory.mktemp("gap")
    for name, lines in (("t.txt", LINES * TIMES), ("valid.txt", LINES[:2])):
        (here / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {"task": "masked", "tokens": "words", "documents": "line", "valid": str(here / "valid.txt")}
    return regard.train("cloze", str(here / "t.txt"), out=here / "r", quiet=True, **data)


def told(run: Any, text: str, **options: Any) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    about = view(run, "gap", text, **options).about
    return about, {one["word"].strip(): one for one in about["words"]}


def test_what_stood_between_the_same_neighbours_is_counted(run: Any) -> None:
    about, words = told(run, f"the {MASK} sat here")
    assert {name: one["between"] for name, one in words.items() if one["between"]} == {"cat": 80, "dog": 40}
    assert (about["position"], about["between"]) == (2, 120)
    # Met after `the`, at the beginning of a sentence, and before `sat here`.
    assert (words["dog"]["left_order"], words["dog"]["right_order"]) == (3, 3)
    assert words["cow"]["right_order"] == 1  # before `ran` alone


@pytest.mark.parametrize(("text", "position"), [(f"the {MASK} sat here", 2), (f"a {MASK} ran", 2), ("the dog sat", 1)])
def test_the_sum_of_it_is_what_the_model_answers(run: Any, text: str, position: int) -> None:
    about, words = told(run, text, position=position)
    total, m = about["between"], about["back_off"]
    for one in words.values():
        assert one["p"] == pytest.approx((one["between"] + m * one["apart"]) / (total + m), rel=1e-4, abs=1e-12)
    fill = view(run, "fill", text, position=position).only("raw").panels[0]
    assert [one["p"] for one in about["words"]] == pytest.approx(list(fill.values), rel=1e-6)


def test_it_is_of_counts_of_both_sides_alone(run: Any, tmp_path: Path) -> None:
    assert "gap" in views(run)
    assert "backoff" not in views(run)
    other = regard.train("ngram", "world:stories?train=30&valid=9", out=tmp_path / "n", quiet=True)
    assert "gap" not in views(other)
