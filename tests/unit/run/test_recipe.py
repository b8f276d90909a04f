"""Recipes that come with the package: by name, as they are, and as a beginning for another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import regard
from regard.core.data_spec import EXAMPLE
from regard.core.registry import entry
from regard.errors import UsageError
from regard.run.recipe import read_recipe, shipped, shipped_text
from regard.run.settings import resolve
from regard.training.estimate import count_parameters, on_meta
from regard.training.settings import from_dict


@pytest.mark.parametrize("name", shipped())
def test_a_recipe_of_the_package_is_read_by_its_name_and_its_model_can_be_built(name: str) -> None:
    settings = resolve(read_recipe(name))
    from_dict(settings.section("train"))
    assert settings.origins["model.name"] == f"recipe {name}"
    model = entry(settings["model.name"]).config(
        replace(EXAMPLE, history=settings["data.history"]), **settings.model_changes
    )
    assert count_parameters(on_meta(model)) > 0
    assert shipped()[name] == shipped_text(name).splitlines()[0].removeprefix("# ")


def test_the_awd_lstm_has_the_parameters_that_its_paper_tells() -> None:
    # Merity, Keskar and Socher 2018, table 2: 33M for the 33,278 words of WikiText-2. By hand: three LSTMs of torch,
    # 4 h (d + h + 2), the table, which the head shares, and the head's bias.
    recurrent = sum(4 * h * (d + h + 2) for d, h in ((400, 1150), (1150, 1150), (1150, 400)))
    settings = resolve(read_recipe("awd-lstm"))
    config = entry("lstm").config(33_278, **settings.model_changes)
    assert count_parameters(on_meta(config)) == recurrent + 33_278 * 401 == 33_556_078


def test_a_file_of_that_name_comes_first_and_a_recipe_extends_one_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "epf"\n[train]\nensemble = 2\n')
    found = read_recipe(mine)
    assert (found["train.ensemble"].value, found["data.history"].value) == (2, 672)
    assert (found["train.ensemble"].place, found["data.history"].place) == (f"recipe {mine}", "recipe epf")
    (tmp_path / "epf").write_text("[train]\nlr = 0.5\n")
    assert list(read_recipe("epf")) == ["train.lr"]


def test_a_name_that_is_none_tells_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"recipe awd_lstm: no such file; .* did you mean 'awd-lstm'"):
        read_recipe("awd_lstm")
    with pytest.raises(UsageError, match="no recipe 'epff' in the package, did you mean 'epf'"):
        shipped_text("epff")


def test_a_training_by_name(tmp_path: Path) -> None:
    small = {"d_model": 8, "d_hidden": 12, "batch_size": 4, "length": 8, "budget": "2steps", "sample_every": 0}
    run = regard.train(
        None, "world:stories?train=30&valid=30", recipe="awd-lstm", out=tmp_path / "r", quiet=True, **small
    )
    assert run.config["model"]["name"] == "lstm"
    assert run.config["model"]["settings"]["weight_dropout"] == 0.5
    assert run.config["origins"]["train.tar"] == "recipe awd-lstm"


def test_a_recipe_that_reads_further_back_than_usual_trains(tmp_path: Path) -> None:
    small = {"d_model": 8, "ensemble": 1, "batch_size": 4, "budget": "1steps", "sample_every": 0}
    run = regard.train(None, "world:electricity", recipe="epf", out=tmp_path / "r", quiet=True, **small)
    assert run.config["data"]["history"] == 672
    assert run.config["model"]["settings"]["lags"] == [1, 2, 3, 7, 14]


def test_the_command_of_the_recipe_for_prices_names_what_is_known_ahead(real_data: Path, tmp_path: Path) -> None:
    (command,) = (line for line in shipped_text("epf").splitlines() if "regard train" in line)
    assert "--set data.known=" in command
    small = {"d_model": 8, "ensemble": 1, "batch_size": 4, "budget": "1steps", "sample_every": 0, "linear": 0}
    given = {"valid": "tail:294d", "known": "load_forecast,wind_forecast", "recipe": "epf", "quiet": True}
    run = regard.train(None, real_data / "epf" / "NP.train.csv.gz", out=tmp_path / "r", **given, **small)
    assert (tuple(run.processor.columns), tuple(run.processor.measured)) == (("load_forecast", "wind_forecast"), ())
