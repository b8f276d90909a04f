"""The learning rate of a width: what a preset says belongs to one, and what a person says is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from regard.core.registry import MODELS, entry
from regard.run.rate import chosen_width, moved, rates_by_size
from regard.run.settings import read_assignments, resolve
from regard.studies.board import LineBoard
from regard.training.settings import DEFAULT_LR


@pytest.mark.parametrize(
    ("words", "rate", "place"),
    [
        ([], 3e-3, "model gpt"),
        (["model.d_model=384"], 1.73e-3, "model gpt: 0.003 at d_model 128, scaled to 384"),
        (["model.size=base"], 1.73e-3, "model gpt: 0.003 at d_model 128, scaled to 384"),
        (["model.size=base", "model.d_model=256"], 2.12e-3, "model gpt: 0.003 at d_model 128, scaled to 256"),
        (["model.d_model=64"], 6e-3, "model gpt: 0.003 at d_model 128, scaled to 64"),
        (["model.size=tiny"], 2.4e-2, "model gpt: 0.003 at d_model 128, scaled to 16"),
        # Not 16 times as much.
        (["model.name=lstm", "model.size=tiny"], 2.4e-2, "model lstm: 0.003 at d_model 256, scaled to 16"),
        (["model.d_model=384", "train.lr=0.003"], 3e-3, "--set"),
        (["model.name=gru", "model.size=base"], 3e-3, "model gru: 0.003 at d_model 256, scaled to 1024"),
        (["model.name=fnn", "model.d_model=256"], 1.5e-3, "model fnn: 0.003 at d_model 128, scaled to 256"),
        (["model.name=ngram"], None, "default"),
    ],
)
def test_the_rate_of_a_preset_goes_with_the_width_and_that_of_a_person_does_not(
    words: list[str], rate: float | None, place: str
) -> None:
    settings = resolve(read_assignments(words))
    assert (settings["train.lr"], settings.origins["train.lr"]) == (rate, place)
    assert len(settings.notes) == ("scaled" in place)


def test_every_model_that_learns_by_steps_has_a_rate_and_a_width_to_which_it_belongs() -> None:
    for name in MODELS:
        known = entry(name)
        if not known.fitted:
            assert chosen_width(known) is not None, name
            assert rates_by_size(known)["small"] == known.training["lr"], name


def test_a_rate_that_was_found_stays_as_far_from_the_models_own() -> None:
    # At a width of 8 the own rate is eight times that of 128, where the rule ends, and at 512 a quarter of it.
    assert moved(0.02, entry("fnn"), 8, 512) == pytest.approx(0.02 / 32)
    assert moved(0.02, entry("fnn"), 64, 128) == pytest.approx(0.01)


def test_a_training_tells_its_rate_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r"
    regard.train("fnn", "world:stories?train=30&valid=30", d_model=32, budget="2steps", out=out, sample_every=0)
    assert "train.lr is 0.012 (model fnn: 0.003 at d_model 128, scaled to 32)" in capsys.readouterr().err
    config = json.loads((out / "config.json").read_text())
    assert config["train"]["lr"] == 0.012
    assert config["origins"]["train.lr"] == "model fnn: 0.003 at d_model 128, scaled to 32"
    again = regard.train(out=out, resume=True, budget="3steps", quiet=True)
    assert again.config["train"]["lr"] == 0.012


def test_a_comparison_begins_at_the_rate_that_a_training_of_that_width_takes(tmp_path: Path) -> None:
    given = {"budget": "6steps", "seeds": 1, "parameters": 20_000, "board": LineBoard(None)}
    found = regard.compare(["fnn"], "world:stories?train=30&valid=30", out=tmp_path / "c", **given)
    run = found.row("fnn").runs[0]
    width = regard.load(run["path"]).config["model"]["settings"]["d_model"]
    assert found.row("fnn").lr == resolve(read_assignments(["model.name=fnn", f"model.d_model={width}"]))["train.lr"]
    assert found.row("fnn").lr != entry("fnn").training.get("lr", DEFAULT_LR)
