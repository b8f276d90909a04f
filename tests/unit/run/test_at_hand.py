"""Training, evaluating and comparing on what a program has in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest

import regard
from regard.errors import DataError, RegardError, UsageError
from regard.studies.board import LineBoard

TEXTS = [f"a {word} film, part {n}" for n in range(20) for word in ("fine", "dull")]
LABELS = ["good", "bad"] * 20
ROWS = list(zip(TEXTS, LABELS, strict=True))
FRAME = pandas.DataFrame({"id": range(40), "comment": TEXTS, "stars": LABELS})
TAGGED = [(["the", noun, verb], ["DET", "NOUN", "VERB"]) for noun in ("dog", "cat", "hen") for verb in ("runs", "sees")]
SOURCES = [f"le chien {n}" for n in range(30)]
PAIRS = [(source, f"the dog {n * 7}") for n, source in enumerate(SOURCES)]
KINDS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "texts": (lambda: TEXTS, "ngram", "text"),
    "texts of a generator": (lambda: (text for text in TEXTS), "ngram", "text"),
    "tuples of a text and its label": (lambda: ROWS, "naive_bayes", "labelled"),
    "a frame of pandas": (lambda: FRAME, "naive_bayes", "labelled"),
    "a frame of polars": (lambda: polars.DataFrame(FRAME), "naive_bayes", "labelled"),
    "an Arrow table": (lambda: pyarrow.Table.from_pandas(FRAME), "naive_bayes", "labelled"),
    "words and tags": (lambda: TAGGED, "most_frequent", "tagged"),
    "pairs": (lambda: PAIRS, "ibm1", "pairs"),
}


def trained(data: Any, model: str, out: Path, **settings: Any) -> regard.Run:
    return regard.train(model, data, out=out, quiet=True, device="cpu", **settings)


def judged(out: Path, **settings: Any) -> regard.Run:
    return trained(ROWS, "naive_bayes", out, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_data_in_memory_is_told_apart_learnt_from_and_evaluated(kind: str, tmp_path: Path):
    make, model, task = KINDS[kind]
    run = trained(make(), model, tmp_path / "r")
    assert run.task.name == task
    assert run.config["data"]["path"] == "memory:data"
    assert "in memory" in run.config["understood"]["form"]
    assert run.evaluate().scores["loss" if task == "text" else run.task.metric] is not None


def test_a_run_says_that_its_data_was_in_memory_and_takes_it_again(tmp_path: Path):
    judged(tmp_path / "r")
    run = regard.load(tmp_path / "r")
    with pytest.raises(UsageError, match="was trained on data in memory, which is gone: give data to evaluate on"):
        run.evaluate()
    assert run.evaluate(ROWS).scores["examples"] == len(ROWS)
    assert run.evaluate(ROWS[:1]).scores["examples"] == 1, "one row has no columns that could be told by their look"
    with pytest.raises(DataError, match="holds no rows"):
        run.evaluate([])


def test_other_data_is_read_by_the_columns_that_training_met(tmp_path: Path):
    run = trained(FRAME, "naive_bayes", tmp_path / "r")
    few = pandas.DataFrame({"stars": ["good"], "other": ["bad"], "comment": ["a fine film"]})
    assert run.evaluate(few).scores == run.evaluate({"comment": ["a fine film"], "stars": ["good"]}).scores
    with pytest.raises(RegardError, match="columns"):
        run.evaluate({"a": ["x"], "b": ["y"], "c": ["z"]})


def test_what_is_held_out_may_be_in_memory_too(tmp_path: Path):
    run = judged(tmp_path / "r", valid=[("a fine film", "good"), ("a dull film", "bad")])
    assert run.evaluate().scores["examples"] == 2
    assert run.config["data"]["valid"] == "memory:valid"
    for same in (ROWS, [list(row) for row in ROWS]):
        with pytest.raises(UsageError, match="valid is the training data itself, or a copy of it"):
            judged(tmp_path / "same", valid=same)


def test_a_run_goes_on_with_the_same_data_and_with_no_other(tmp_path: Path):
    options: dict[str, Any] = {"size": "tiny", "batch_size": 4}
    first = trained(ROWS, "classifier", tmp_path / "r", budget="2steps", **options)
    assert first.metrics[-1]["step"] == 2
    again = regard.train(data=ROWS, out=tmp_path / "r", resume=True, budget="4steps", quiet=True)
    assert again.metrics[-1]["step"] == 4
    with pytest.raises(RegardError, match="was a table in memory, which is gone: give it again"):
        regard.train(out=tmp_path / "r", resume=True, budget="5steps", quiet=True)
    with pytest.raises(RegardError, match=r"another run is in the folder: data\.hash"):
        regard.train(data=ROWS[:30], out=tmp_path / "r", resume=True, budget="5steps", quiet=True)


def test_a_comparison_takes_data_in_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = regard.compare(["majority", "naive_bayes"], FRAME, budget="3steps", seeds=1, out=tmp_path / "c")
    assert (found.protocol.data, found.protocol.task) == ("memory:data", "labelled")
    assert {one.label for one in found.order} == {"majority", "naive_bayes"}
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "naive_bayes" in shown.err
    assert repr(found).startswith("Comparison('memory:data', by accuracy: ")
    assert "<script" not in found._repr_html_()
    with pytest.raises(UsageError, match=r"give \['ngram'\]"):
        regard.compare("ngram", FRAME, board=LineBoard(None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("once there was a boy who went out", r"no file called 'once there was .* as a list: \[text\]"),
        ("two\nlines", r"as a list: \[text\]"),
        ("x" * 5000 + "\n", r"as a list: \[text\]"),
        ("", "expected a path or data, found an empty text"),
        (5, "found the number 5"),
        (b"bytes", "found bytes"),
        ([], "data holds no rows"),
        (["a", 5], "data, row 2"),
    ],
)
def test_what_data_cannot_be_gets_one_line_and_nothing_is_written(data: Any, told: str, tmp_path: Path):
    with pytest.raises(RegardError, match=told) as caught:
        trained(data, "ngram", tmp_path / "r")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "r").exists()


def test_data_in_the_place_of_the_model_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match="expected the name of a model, found a list; data comes second"):
        regard.train(ROWS, "linear")  # type: ignore[arg-type]


def test_progress_leaves_stdout_to_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    regard.train("naive_bayes", ROWS, out=tmp_path / "r")
    shown = capsys.readouterr()
    assert (shown.out, "40 rows read" in shown.err) == ("", True)
