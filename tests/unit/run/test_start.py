"""Runs that start from runs: models go on with every task, and what LoRA and freezing leave is left as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.core.model import logits_of
from regard.errors import UsageError
from regard.run.train import plan
from regard.storage import tensors

TINY: dict[str, Any] = {"device": "cpu", "batch_size": 4, "quiet": True}
STORIES = "world:stories?train=40&valid=9"
DATA = {
    "gpt": STORIES,
    "bert": STORIES,
    "transformer": "world:translation?train=20&valid=5",
    "captioner": "world:shapes?train=12&valid=4",
    "forecaster": "world:electricity?train=60&valid=4",
    "tagger": "world:tags?train=20&valid=5",
    "classifier": "world:reviews?train=20&valid=6",
}
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, data in DATA.items():
        regard.train(name, data, budget="1steps", out=folder / name, size="tiny", length=24, **TINY)
    return folder


def started(runs: Path, name: str, out: Path, **settings: Any) -> Any:
    usual = TINY | {"budget": "1steps", "length": 24} | settings
    return regard.train(data=DATA[name], start=runs / name, out=out, **usual)


@pytest.mark.parametrize("name", list(DATA))
def test_a_model_of_every_task_goes_on_from_its_weights_exactly(runs: Path, name: str, tmp_path: Path) -> None:
    run = started(runs, name, tmp_path / "r", lr=1e-30, weight_decay=0.0, choose_by="loss")
    own, theirs = tensors.read(run.path / WEIGHTS), tensors.read(runs / name / WEIGHTS)
    learnt = {key for key, _ in run.model.named_parameters()} & own.keys()
    assert own.keys() == theirs.keys()
    for key in learnt:
        torch.testing.assert_close(own[key], theirs[key], rtol=0, atol=1e-7, msg=key)
    for file in ("tokenizer.json", "codec.json"):
        if (runs / name / file).exists():
            assert (run.path / file).read_bytes() == (runs / name / file).read_bytes()
    assert run.config["model"]["name"] == name
    assert run.config["model"]["settings"] == {}


@pytest.mark.parametrize("name", ["gpt", "transformer", "captioner", "forecaster", "tagger"])
def test_lora_learns_beside_weights_that_stay_and_is_merged_when_loaded(runs: Path, name: str, tmp_path: Path) -> None:
    run = started(runs, name, tmp_path / "r", lora=2, lr=0.05, budget="2steps")
    own, theirs = tensors.read(run.path / WEIGHTS), tensors.read(runs / name / WEIGHTS)
    ups = [key for key in own if key.endswith("lora_up")]
    assert any(own[key].abs().max() > 0 for key in ups)
    parameters = {key for key, _ in run.model.named_parameters()}
    for key in theirs.keys() & parameters:
        assert torch.equal(own[key], theirs[key]), key
    loaded = dict(regard.load(run.path, device="cpu").model.named_parameters())
    assert loaded.keys() == parameters
    for key in ups:
        part = key.removesuffix("lora_up")
        whole = own[f"{part}weight"].double() + 8 * own[key].double() @ own[f"{part}lora_down"].double()
        torch.testing.assert_close(loaded[f"{part}weight"].double(), whole, rtol=1e-5, atol=1e-6)
    assert (run.config["train"]["lr"], run.config["model"]["settings"]) == (0.05, {"lora": 2})


def test_a_classifier_over_a_language_model_learns_its_head_and_the_changes_alone(runs: Path, tmp_path: Path) -> None:
    data = DATA["classifier"]
    run: Any = regard.train(
        data=data, start=runs / "gpt", lora=2, lr=0.05, budget="3steps", out=tmp_path / "r", ema=0.0, **TINY
    )
    own, theirs = tensors.read(run.path / WEIGHTS), tensors.read(runs / "gpt" / WEIGHTS)
    for key, value in theirs.items():
        if f"encoder.{key}" in own:
            assert torch.equal(own[f"encoder.{key}"], value), key
    # Of what looks back only, the vector of the last token has seen all of a text.
    assert run.config["model"]["config"]["pooling"]["form"] == "last"
    again: Any = regard.train(data=data, start=run.path, budget="1steps", lr=1e-30, out=tmp_path / "s", **TINY)
    tokens = torch.from_numpy(run.processor.read("the food was good"))[None]
    torch.testing.assert_close(logits_of(again.model, tokens), logits_of(run.model, tokens), rtol=1e-4, atol=1e-5)


def test_what_is_frozen_stays_to_the_bit_and_the_rest_moves(runs: Path, tmp_path: Path) -> None:
    run = started(runs, "gpt", tmp_path / "r", freeze="embedding,layers.0", budget="3steps", lr=0.01)
    own, theirs = tensors.read(run.path / WEIGHTS), tensors.read(runs / "gpt" / WEIGHTS)
    moved = {key for key in own if not torch.equal(own[key], theirs[key])}
    assert moved
    assert all("layers.1" in key or key.startswith(("norm", "head")) for key in moved)


def test_resume_with_lora_frozen_layers_and_falling_rates_is_bit_identical(runs: Path, tmp_path: Path) -> None:
    settings = {"schedule": "constant", "warmup": 0.0, "save_every": 2, "evaluate_every": 2, "lora": 2}
    settings |= {"freeze": "layers.0", "layer_decay": 0.5}
    started(runs, "bert", tmp_path / "whole", budget="4steps", **settings)
    started(runs, "bert", tmp_path / "parts", budget="2steps", **settings)
    regard.train(out=tmp_path / "parts", budget="4steps", resume=True, quiet=True)
    pair = [(tmp_path / name / "checkpoints/00000004" / WEIGHTS).read_bytes() for name in ("whole", "parts")]
    assert pair[0] == pair[1]


def test_the_rate_is_that_of_what_was_learnt_before_and_not_of_a_new_model(runs: Path) -> None:
    from regard.run.settings import Origin

    def rate(**changes: Any) -> tuple[float, str]:
        layer = {key.replace("_", ".", 1): Origin(value, "--set") for key, value in changes.items()}
        layer |= {"data.path": Origin(STORIES, "argument"), "train.start": Origin(str(runs / "gpt"), "flag --from")}
        found = plan(recipe=None, changes=layer, out="x").settings
        assert found["train.optimiser"] == "adamw"
        return found["train.lr"], found.table["train.lr"].place

    assert rate() == (1e-3, "fine-tuning")
    assert rate(train_lr=0.5) == (0.5, "--set")


def test_lora_without_a_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lora: changes what was learnt before; name a run with --from"):
        regard.train("gpt", STORIES, lora=4, out=tmp_path / "r", budget="1steps", quiet=True)
