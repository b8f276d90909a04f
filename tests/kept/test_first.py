"""Run folders of the first format: they load, and say what they said when they were made.

`first` holds a folder for every family and task, trained for twenty steps on the small files beside them, and in
scores.json what the program that wrote them measured: its evaluation, and logits of a fixed input.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import regard
from regard.core.inputs import Inputs, PastKnown, SourceTokens
from regard.core.model import logits_of
from regard.storage import manifest
from regard.storage.manifest import FORMAT_VERSION
from regard.training import run_folder

FIRST = Path(__file__).parent / "first"
SCORES = json.loads((FIRST / "scores.json").read_text())
TOKENS = torch.tensor([[1, 5, 2, 7]])
TYPED: dict[str, Any] = {"classifier": "anna sees the red lamp", "tagger": ("anna", "sees", "the", "lamp")}


def inputs_for(name: str, run: Any) -> Inputs:
    """What the logits were taken of."""
    chance = torch.Generator().manual_seed(5)
    if name == "forecaster":
        config = run.model.config
        past = torch.randn(1, 168, 1 + config.n_known, generator=chance)
        return PastKnown(past, torch.randn(1, config.horizon, config.n_known, generator=chance))
    if name in TYPED:
        return torch.from_numpy(run.processor.read(TYPED[name]))[None]
    if name == "captioner":
        return SourceTokens(torch.rand(1, 3, 32, 32, generator=chance), TOKENS)
    if name in ("transformer", "bahdanau"):
        return SourceTokens(torch.tensor([[3, 4, 5]]), TOKENS)
    return TOKENS


@pytest.mark.parametrize("name", sorted(SCORES))
def test_a_run_of_the_first_format_gives_the_logits_and_scores_that_it_gave(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FIRST)
    run = regard.load(name)
    with torch.no_grad():
        found: Tensor = logits_of(run.model, inputs_for(name, run)).double().flatten()
    told = [float(found.sum()), float(found.abs().sum()), *found[:3].tolist()]
    assert told == pytest.approx(SCORES[name]["logits"], rel=1e-6, abs=1e-6)
    if SCORES[name]["data"].startswith("world:"):
        return  # a thousand pictures to write captions for
    scores = run.evaluate(SCORES[name]["data"]).scores
    assert {key: scores[key] for key in SCORES[name]["scores"]} == pytest.approx(SCORES[name]["scores"], rel=1e-6)


def test_the_processor_of_a_series_of_the_first_format_is_known_again_by_its_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(FIRST)
    run = regard.load("forecaster")
    assert run.processor.hash == run.config["data"]["tokenizer"]
    assert run.evaluate().scores["points"] % 24 == 0  # of what was held out, which is found again


def test_a_run_of_the_first_format_goes_on_and_becomes_one_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FIRST / "lstm", tmp_path / "lstm")
    shutil.copy(FIRST / "text.txt", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert manifest.read_json(tmp_path / "lstm" / manifest.NAME)["format_version"] == 1
    before = json.loads((tmp_path / "lstm" / "config.json").read_text())
    run = regard.train(out="lstm", resume=True, budget="30steps", quiet=True)
    assert run.evaluate("text.txt").scores["loss"] < SCORES["lstm"]["scores"]["loss"]
    assert manifest.read_json(tmp_path / "lstm" / manifest.NAME)["format_version"] == FORMAT_VERSION > 1
    assert run_folder.read_config(tmp_path / "lstm")["model"] == before["model"]
