"""Rolling evaluation: what is learnt before each block, and how another file goes on with the run's own series."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.data.series import Series
from regard.errors import DataError, Stopped, UsageError
from regard.tasks.rolling import blocks_of, continued, steps_of
from regard.training import loop

HOUR = np.timedelta64(3600, "s")


def series(days: int = 40, start: str = "2024-01-01", columns: tuple[str, ...] = ("wind",)) -> Series:
    times = np.datetime64(start, "s") + np.arange(24 * days) * HOUR
    target = (times - np.datetime64("2024-01-01", "s")) / HOUR
    return Series(times, target, np.zeros((len(times), len(columns))), columns, HOUR, name=start)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory):
    return regard.train(
        "dlinear", "world:electricity?train=30&valid=8", history=48, out=tmp_path_factory.mktemp("r") / "r", quiet=True
    )


def test_every_block_is_told_once_and_after_all_that_came_before_it(run):
    held = run.held_out("valid")
    blocks = run.task.blocks(run, None, "3d")
    assert [len(block.examples) for block in blocks] == [3, 3, 2]
    assert [one.origin for block in blocks for one in block.examples] == [one.origin for one in held]
    for block in blocks:
        learnt = block.dataset.train.origins
        assert learnt.max() + 24 == block.examples[0].origin
        assert set(run.dataset.train.origins) <= set(learnt)


def test_a_fitted_model_is_fitted_anew_and_the_run_stays_as_it_is(run):
    before = run.model.weights.clone()
    plain, rolled = run.evaluate(), run.evaluate(every="2d")
    assert (run.model.weights == before).all()
    assert [row["horizons"] for row in rolled.tables["by_block"]] == [2, 2, 2, 2]
    # The first block was told by what the run itself had learnt.
    first = np.mean([np.abs(a - b).mean() for a, b in _told(run, 2)])
    assert rolled.tables["by_block"][0]["mae"] == pytest.approx(first, rel=1e-6)
    assert rolled.scores["mae"] == pytest.approx(np.mean([row["mae"] for row in rolled.tables["by_block"]]))
    assert rolled.scores["mae"] != plain.scores["mae"]
    assert run.evaluate(every="2d", limit=3).scores["points"] == 72
    for other in ({"part": "test"}, {"weights": "int8"}, {"beam": 2}):
        with pytest.raises(UsageError, match=f"every: {next(iter(other))} means nothing beside it"):
            run.evaluate(every="2d", **other)


def _told(run, count: int):
    found = run.task.forecast(run.model, run.processor, run.held_out("valid")[:count])
    for one, told in zip(run.held_out("valid"), found, strict=False):
        yield told[:, 4], one.series.target[one.origin : one.origin + 24]


def test_a_model_that_learns_by_steps_goes_on_and_so_does_each_part_of_an_ensemble(tmp_path: Path, monkeypatch):
    run = regard.train(
        *("forecaster", "world:electricity?train=20&valid=4"), budget="20steps", size="tiny", ensemble=2,
        out=tmp_path / "e", quiet=True,
    )  # fmt: skip
    before = [parameter.clone() for parameter in run.model.parameters()]
    monkeypatch.setattr(loop, "read_is_due", lambda _: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped, match=r"nothing was written, .*/e is as it was"):
        run.evaluate(every="2d")
    monkeypatch.undo()
    report = run.evaluate(every="2d")
    assert all((a == b).all() for a, b in zip(before, run.model.parameters(), strict=True))
    assert len(report.tables["by_block"]) == 2
    assert report.scores["mae"] != run.evaluate().scores["mae"]


@pytest.mark.parametrize(("every", "steps"), [("24h", 24), ("28d", 672), ("2w", 336)])
def test_a_span_is_counted_in_steps(every: str, steps: int):
    assert steps_of(every, HOUR, 24) == steps


@pytest.mark.parametrize("every", ["", "28", "0d", "x", "12h", "-1d", "1.5d"])
def test_what_is_no_span_or_shorter_than_a_horizon_is_refused(every: str):
    with pytest.raises(UsageError, match=r"such as 24h, 28d or 4w, at least the 24 steps"):
        steps_of(every, HOUR, 24)


def test_a_file_that_holds_the_trained_part_is_told_from_its_end_on():
    own, other = series(40), series(50)
    (found,), first = continued([own], [30 * 24], [other])
    assert found is other
    assert first == own.times[30 * 24]


def test_a_file_that_begins_later_goes_on_with_the_run_s_own():
    own = series(40)
    for start in ("2024-02-05", "2024-02-10"):  # within what was held out, and just after its end
        other = series(10, start)
        (found,), first = continued([own], [30 * 24], [other])
        assert first == other.times[0]
        assert np.array_equal(found.target, np.arange(len(found.target)))


def test_a_file_that_does_not_go_on_is_refused():
    own = series(40)
    with pytest.raises(DataError, match="nothing missing between"):
        continued([own], [30 * 24], [series(10, "2024-02-11")])
    with pytest.raises(DataError, match="nothing new to forecast"):
        continued([own], [30 * 24], [series(20)])
    with pytest.raises(DataError, match="trained with wind"):
        continued([own], [30 * 24], [series(50, columns=("sun",))])
    with pytest.raises(DataError, match="nothing missing between"):
        continued([own], [30 * 24], [replace(series(10, "2024-02-10").part(0, 2), step=HOUR, times=_odd())])


def _odd() -> np.ndarray:
    return np.datetime64("2024-02-10T00:30:00", "s") + np.arange(2) * HOUR


def test_a_series_without_anything_to_tell_is_refused(run):
    whole = run.held_out("valid")[0].series
    with pytest.raises(DataError, match="no whole horizon"):
        blocks_of([whole], (whole.times[-1], whole.times[-1]), "1d", run.processor)
    with pytest.raises(DataError, match="nothing to learn from before"):
        blocks_of([whole], (whole.times[0], whole.times[-1]), "1d", run.processor)
