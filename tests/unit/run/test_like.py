"""A run like another: its data and what was set or found in it, for longer or at another size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import UsageError
from regard.run.settings import Origin
from regard.run.train import plan, train_run
from regard.studies.board import LineBoard
from regard.tasks import names, task_named

# Of every task that takes an encoder by name, a world that is read at once.
WORLDS = {
    "labelled": "world:reviews?train=30&valid=30",
    "regression": "world:ratings?train=30&valid=30",
    "multilabel": "world:topics?train=30&valid=30",
    "tagged": "world:tags?train=30&valid=30",
    "series": "world:electricity",
}
STORIES = "world:stories?train=30&valid=30"


@pytest.fixture(scope="module")
def winner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("like") / "c"
    given: dict[str, Any] = {"budget": "8steps", "seeds": 1, "parameters": 20_000, "board": LineBoard(None)}
    found = regard.compare(["fnn"], STORIES, out=out, **given)
    assert not found.failed
    return Path(found.row("fnn").runs[0]["path"])


def planned(like: Path, **changes: Any) -> Any:
    return plan(recipe=None, changes=changes, out="x", like=like).settings


def test_a_run_like_another_has_its_data_width_and_rate(winner: Path) -> None:
    old, new = regard.load(winner).config, planned(winner, **{"train.budget": Origin("30m", "flag --budget")})
    assert new["train.budget"] == "30m"
    assert new["data.path"] == f"{STORIES}&seed=0"
    assert (new["train.lr"], new["data.test"]) == (old["train"]["lr"], 0.5)
    assert new["model.d_model"] == old["model"]["settings"]["d_model"]
    assert new.table["train.lr"].place == f"run {winner}"


def test_at_another_size_the_rate_goes_with_the_width(winner: Path) -> None:
    old, new = regard.load(winner).config, planned(winner, **{"model.size": Origin("base", "flag --size")})
    assert new.table["model.d_model"].place == "size base"
    # The rate of the preset belongs to a width of 128; the rule goes no further than eight times that.
    before = min(8.0, 128 / old["model"]["settings"]["d_model"])
    assert new["train.lr"] == pytest.approx(old["train"]["lr"] / before * 128 / new["model.d_model"], rel=0.01)


def test_it_is_trained(winner: Path, tmp_path: Path) -> None:
    made = regard.train(like=winner, budget="2steps", out=tmp_path / "r", quiet=True)
    assert made.config["model"]["name"] == "fnn"


def test_every_task_with_encoders_by_name_is_asked() -> None:
    assert set(WORLDS) == {name for name in names() if task_named(name).headed is not None}


@pytest.mark.parametrize("task", WORLDS)
def test_the_encoder_that_was_named_as_the_model_is_kept(task: str, tmp_path: Path) -> None:
    given = {"data.path": Origin(WORLDS[task], "argument"), "model.name": Origin("mamba", "flag --model")}
    given |= {"model.size": Origin("tiny", "flag --size"), "train.budget": Origin("1steps", "flag --budget")}
    job = plan(recipe=None, changes=given, out=tmp_path / "a")
    new = planned(train_run(job)[0].path)
    assert new["model.encoder"] == "mamba"
    assert new.table["model.encoder"].place == f"run {job.out}"
    assert new.section("model") == job.settings.section("model")
    assert new["train.lr"] == job.settings["train.lr"]
    # The rate of a width is the model's own, and goes on to be that of the width that is asked for.
    assert planned(job.out, **{"model.size": Origin("small", "flag")}).table["train.lr"].place.startswith("model ")


def test_an_entrant_of_a_comparison_keeps_its_encoder_and_its_rate(tmp_path: Path) -> None:
    given: dict[str, Any] = {"budget": "4steps", "seeds": 1, "parameters": 20_000, "board": LineBoard(None)}
    found = regard.compare(["rnn", "majority"], WORLDS["labelled"], out=tmp_path / "c", **given)
    path = Path(found.row("rnn").runs[0]["path"])
    new, saved = planned(path), regard.load(path).config
    assert (new["model.encoder"], new["train.lr"]) == ("rnn", saved["train"]["lr"])
    assert planned(path, **{"model.size": Origin("base", "flag --size")})["model.encoder"] == "rnn"


def test_what_contradicts_it_is_refused(winner: Path) -> None:
    with pytest.raises(UsageError, match="is a run of fnn"):
        planned(winner, **{"model.name": Origin("lstm", "flag --model")})
    with pytest.raises(UsageError, match="leave one of them out"):
        plan(recipe=None, changes={}, out="x", like=winner, resume="last")
