"""A run goes on as the model that it is, whatever a preset says by now where nobody says anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import RegardError
from regard.training.run_folder import CONFIG, claim, json_file

MONTH: dict[str, Any] = {"size": "tiny", "device": "cpu", "history": 672, "quiet": True}


def begun(out: Path, **more: Any) -> None:
    """A run of a forecaster as regard left one when its level was a month by default, and a second one unheard of."""
    data = "world:electricity?train=40&valid=4"
    regard.train("forecaster", data, out=out, budget="2steps", level=28, far=0, **MONTH, **more)
    for folder in (out, *sorted((out / "parts").glob("*"))):
        with claim(folder) as run:
            config = run.config()
            del config["model"]["settings"]["far"], config["origins"]["model.far"]
            config["origins"]["model.level"] = "default"
            part = config["model"]["config"]
            del part.get("part", part)["far"]
            run.publish({CONFIG: json_file(config)})


@pytest.mark.parametrize("ensemble", [1, 2])
def test_a_run_of_an_earlier_preset_goes_on_as_it_was(ensemble: int, tmp_path: Path):
    begun(tmp_path / "run", ensemble=ensemble)
    run: Any = regard.train(out=tmp_path / "run", resume=True, budget="6steps", quiet=True)
    config = getattr(run.model.config, "part", run.model.config)
    assert (config.level, config.linear, config.far) == (28, 7, 0)
    assert run.metrics[-1]["step"] == 6
    assert regard.load(tmp_path / "run").evaluate().to_dict() == run.evaluate().to_dict()


@pytest.mark.parametrize("said", [{"level": 7}, {"far": 28}, {"d_model": 24}, {"history": 336}])
def test_what_is_said_of_the_model_or_of_the_data_is_not_passed_over(said: dict[str, int], tmp_path: Path):
    begun(tmp_path / "run")
    with pytest.raises(RegardError, match="another run is in the folder"):
        regard.train(out=tmp_path / "run", resume=True, budget="6steps", quiet=True, **said)
