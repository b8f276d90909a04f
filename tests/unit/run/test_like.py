"""A run like another: its data and what was set or found in it, for longer or at another size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import UsageError
from regard.run.settings import Origin
from regard.run.train import plan
from regard.studies.board import LineBoard

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


def test_what_contradicts_it_is_refused(winner: Path) -> None:
    with pytest.raises(UsageError, match="is a run of fnn"):
        planned(winner, **{"model.name": Origin("lstm", "flag --model")})
    with pytest.raises(UsageError, match="leave one of them out"):
        plan(recipe=None, changes={}, out="x", like=winner, resume="last")
