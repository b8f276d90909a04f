"""A test part: taken from what is held out, seen neither by training nor by choosing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.data.corpus import prepare
from regard.data.rows import once
from regard.data.settings import DataSettings
from regard.errors import DataError, UsageError
from regard.tasks import task_named


def test_examples_are_kept_or_set_apart_and_never_both() -> None:
    kind = task_named("pairs")
    settings = DataSettings(path="world:dates?train=20&valid=10", task="pairs", test=0.3)
    whole = kind.prepare(settings, 0)
    found = kind.ready(settings, 0)
    kept, test = ([pair.source for pair in part] for part in (found.examples, found.test))
    assert len(kept) == 7
    assert sorted(kept + test) == sorted(pair.source for pair in whole.examples)
    assert found.hash == whole.hash


def test_a_series_is_tested_on_what_comes_last() -> None:
    kind = task_named("series")
    found = kind.ready(DataSettings(path="world:electricity?train=30&valid=10", task="series", test=0.5), 0)
    assert max(one.origin for one in found.examples) < min(one.origin for one in found.test)


def test_training_looks_at_the_kept_rows_alone(tmp_path: Path) -> None:
    run: Any = regard.train(
        "rnn", "world:reviews?train=30&valid=20", budget="2steps", size="tiny", test=0.5, out=tmp_path / "r", quiet=True
    )
    dataset = run.dataset
    fitted = run.task.training(dataset, run.model, regard_settings(run), DataSettings(path="x", task="labelled"))
    rows = [number for batch in fitted.held_out() for number in batch.indices]
    assert len(rows) == len(dataset.examples) == 10
    assert fitted.held_out_tokens == 10
    again: Any = regard.load(tmp_path / "r")
    assert again.evaluate(part="test").scores == run.evaluate(part="test").scores


def regard_settings(run: Any) -> Any:
    from regard.training.settings import from_dict

    return from_dict(run.config["train"])


def test_some_rows_are_those_of_the_whole() -> None:
    from regard.data.rows import Some

    kind = task_named("tagged")
    rows = kind.prepare(DataSettings(path="world:tags?train=30&valid=6", task="tagged"), 0).valid
    some = Some(rows, np.array([1, 4]))
    (batch,) = once(some, 8)
    order = np.argsort(-some.sizes, kind="stable")
    expected = rows.batch_of(np.array([1, 4])[order], order)
    assert batch.tokens.tolist() == expected.tokens.tolist()
    assert some.n_targets == expected.n_counted


def test_text_has_a_test_part_too_and_it_travels_through_the_cache(tmp_path: Path) -> None:
    spec = "world:stories?train=20&valid=10"
    plain, found = prepare(spec), prepare(spec, test=0.5)
    assert found.test is not None
    assert found.valid.tokens + found.test.tokens == plain.valid.tokens
    assert plain.test is None
    for _ in range(2):
        stored = prepare(spec, test=0.5, cache=tmp_path)
        assert stored.test is not None
        assert stored.test.ids.tolist() == found.test.ids.tolist()
        assert stored.hash == found.hash


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"data\.test"):
        DataSettings(test=1.0)
    few = "1 held-out example is too few to set a test part apart; give more examples, or compare with folds=5"
    with pytest.raises(DataError, match=few):
        task_named("pairs").ready(DataSettings(path="world:dates?train=5&valid=1", task="pairs", test=0.5), 0)
    run = regard.train(
        "fnn", "world:stories?train=9&valid=3", budget="1steps", size="tiny", out=tmp_path / "r", quiet=True
    )
    with pytest.raises(UsageError, match="without a test part"):
        run.evaluate(part="test")
