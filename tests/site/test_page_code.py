"""Blocks of the pages that need more around them than files: parts of a model, a server, a tracker, a recipe."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from block_reading import blocks, lines
from calling import TEXT, TINY, done
from page_registry import recipes

import regard
from regard.core.context import EMPTY
from regard.mixers.lstm import LstmConfig
from regard.training import track
from served import serving


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python(page: str) -> list[str]:
    return [block for language, block in blocks(f"docs/{page}") if language == "python"]


def test_the_calls_of_a_mixer_and_of_a_model_in_contract_md():
    calls_of_a_mixer, calls_of_a_model, _ = python("contract.md")
    mixer = LstmConfig(4).build()
    x = torch.randn(2, 3, 4)
    names: dict[str, Any] = {"mixer": mixer, "x": x, "x_t": x[:, :1], "context": EMPTY}
    exec(calls_of_a_mixer, names | {"state": mixer.init_state(2)})
    model = regard.build("gpt", vocab_size=7, size="tiny")
    tokens = torch.tensor([[1, 2, 3]])
    names = {"model": model, "inputs": tokens, "targets": tokens, "state": None, "context": EMPTY}
    exec(calls_of_a_model, names)
    assert names["logits"].shape == (1, 3, 7)
    assert names["loss"].ndim == 0


def test_the_mixer_that_contract_md_writes_from_scratch_keeps_the_laws(here: Path, monkeypatch: pytest.MonkeyPatch):
    (here / "decay.py").write_text(python("contract.md")[2], encoding="utf-8")
    monkeypatch.syspath_prepend(here)
    assert "step" in done("check", "decay:Decay")


def test_the_tracker_and_the_recipe_of_training_md(here: Path, capsys: pytest.CaptureFixture[str]):
    recipes(here)
    names: dict[str, Any] = {"__name__": "own_tracker"}
    try:
        exec(*python("training.md"), names)
        regard.train("fnn", "my.txt", size="tiny", budget="2steps", out="runs/told", track="printed", quiet=True)
    finally:
        track._registered.pop("printed")
    assert capsys.readouterr().out.rstrip().endswith("finished")
    (recipe,) = [block for language, block in blocks("docs/training.md") if language == "toml"]
    (here / "recipe.toml").write_text(recipe, encoding="utf-8")
    done("train", "my.txt", "--recipe", "recipe.toml", *TINY, "--budget", "2steps", "--quiet", "--out", "runs/of-it")
    assert "alibi" in done("show", "runs/of-it", "--origin")


def test_the_client_and_the_curl_of_serving_md(here: Path, capsys: pytest.CaptureFixture[str]):
    if importlib.util.find_spec("openai") is None:
        pytest.skip("openai is not installed")
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    done("train", "my.txt", "--model", "fnn", *TINY, "--budget", "2steps", "--quiet", "--out", "runs/mine")
    with serving(here, "runs/mine") as server:
        (client,) = python("serving.md")
        exec(client.replace("http://127.0.0.1:8000/", server.url), {})
        assert len(capsys.readouterr().out) > 10
        (asked,) = [line for line in lines("docs/serving.md") if line.startswith("curl ")]
        if shutil.which("curl"):
            own = asked.replace("http://127.0.0.1:8000/", server.url)
            answer = subprocess.run(own, shell=True, capture_output=True, text=True, timeout=60, check=True)
            assert '"text"' in answer.stdout
