"""Comparisons on so few examples that little can be said, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.comparison import Comparison
from regard.studies.notes import notes
from regard.studies.summary import finding

FITTED = ["majority", "linear"]


def compared(rows: list[tuple[str, str]], valid: list[tuple[str, str]], folder: Path) -> Comparison:
    """A comparison of models that are fitted at once, on labelled texts."""
    for name, held in (("train", rows), ("valid", valid)):
        lines = ["text,label", *(f"{text},{label}" for text, label in held)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    board, valid_path = LineBoard(None), str(folder / "valid.csv")
    return compare(FITTED, folder / "train.csv", out=folder / "c", board=board, valid=valid_path, task="labelled")


@pytest.fixture
def rows() -> list[tuple[str, str]]:
    """Sixty texts that tell their label, most of them good."""
    good = [(f"a fine and lovely day number{n}", "good") for n in range(40)]
    return good + [(f"a sad and awful night number{n}", "bad") for n in range(20)]


def test_of_two_test_examples_there_is_no_winner(rows: list[tuple[str, str]], tmp_path: Path) -> None:
    found = compared(rows, [(f"an awful and sad place{n}", "bad") for n in range(4)], tmp_path)
    assert [(one.label, one.mean) for one in found.order] == [("linear", 1.0), ("majority", 0.0)]
    assert found.verdict.winner is None
    assert "No winner" in finding(found)
    told = " ".join(notes(found))
    assert "Tested on 2 examples." in told
    assert "Of 2 examples no difference is certain, however large" in told
    assert all(0 <= one.ends[0] < one.ends[1] <= 1 for one in found.order)


def test_of_one_test_example_its_number_is_the_reason_that_there_are_no_intervals(
    rows: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = compared(rows, [(f"an awful and sad place{n}", "bad") for n in range(2)], tmp_path)
    assert "Tested on 1 example, and from one there are no intervals." in notes(found)


def test_too_few_rows_for_a_test_are_told_what_to_do(tmp_path: Path) -> None:
    rows = [(f"a text of number{n}", "good" if n % 2 else "bad") for n in range(20)]
    told = r"1 held-out example is too few to set a test part apart; give more examples, or compare with folds=5"
    with pytest.raises(DataError, match=told):
        compare(FITTED, rows, out=tmp_path / "c", board=LineBoard(None), task="labelled")
    assert compare(FITTED, rows, out=tmp_path / "f", board=LineBoard(None), task="labelled", folds=5).order


def test_a_model_that_reads_the_text_itself_is_not_said_to_read_the_same_tokens(
    rows: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = compared(rows, [(f"an awful and sad place{n}", "bad") for n in range(4)], tmp_path)
    assert notes(found)[0].startswith(
        "Held equal: data, tokens (but linear reads the text itself, whatever its tokens), split, "
    )
    alone = replace(found, rows=(found.row("linear"),))
    assert notes(alone)[0].startswith("Held equal: data, split, ")
