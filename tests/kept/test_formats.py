"""Formats of run folders: of every number a run is kept that loads and scores as it did; a newer one is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.errors import CheckpointError
from regard.storage import manifest, tensors
from regard.storage.format import FIRST, FORMAT_VERSION, NAMES, STEPS, name_now, steps_since

HERE = Path(__file__).parent
DATA = HERE / "first"
OF_TODAY = HERE / "second"
SCORES = json.loads((OF_TODAY / "scores.json").read_text())


def numbers_of(folder: Path) -> set[int]:
    """The formats that the manifests below a folder say."""
    return {manifest.read_json(path)["format_version"] for path in folder.glob("*/manifest.json")}


def test_of_every_format_a_run_is_kept():
    kept = [numbers_of(folder) for folder in sorted(HERE.glob("[a-z]*/"))]
    assert sorted(number for found in kept for number in found) == list(range(FIRST, FORMAT_VERSION + 1))


def test_every_step_has_a_name_and_leads_to_the_next_number():
    assert [step.to for step in STEPS] == list(range(FIRST + 1, FORMAT_VERSION + 1))
    assert len({step.name for step in STEPS}) == len(STEPS)
    assert steps_since(FORMAT_VERSION) == ()
    assert steps_since(FIRST) == STEPS


@pytest.mark.parametrize("name", SCORES)
def test_a_run_of_todays_format_scores_as_it_did(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(DATA)
    found = regard.load(OF_TODAY / name).evaluate(SCORES[name]["data"]).scores
    told = SCORES[name]["scores"]
    assert {key: found[key] for key in told} == pytest.approx(told, rel=1e-6)


def test_names_of_the_first_format_are_read_as_those_of_today():
    assert name_now("optimiser/to_logits.weight/first", 1) == "optimiser/head.weight/first"
    assert name_now("to_classes.bias", FORMAT_VERSION) == "to_classes.bias"


def newer_manifest(run: Path) -> None:
    content = manifest.read_json(run / manifest.NAME) | {"format_version": FORMAT_VERSION + 1}
    (run / manifest.NAME).write_bytes(manifest.canonical(content))


def newer_config(run: Path) -> None:
    _rewrite(run, "config.json", lambda old: old | {"format_version": FORMAT_VERSION + 1})


def newer_names(run: Path) -> None:
    weights = tensors.read(run / "model.safetensors")
    told = {NAMES: str(FORMAT_VERSION + 1), "tied": "{}"}
    (run / "model.safetensors").write_bytes(b"".join(map(bytes, tensors.chunks(weights, told))))
    _seal(run, "model.safetensors")


def _rewrite(run: Path, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    (run / name).write_bytes(manifest.canonical(change(manifest.read_json(run / name))))
    _seal(run, name)


def _seal(run: Path, name: str) -> None:
    """Say in the manifest that a file is as it is."""
    old = manifest.read(run)
    new = manifest.Manifest({**old.files, name: manifest.hash_file(run / name)}, old.facts)
    (run / manifest.NAME).write_bytes(new.to_bytes())


@pytest.mark.parametrize("change", [newer_manifest, newer_config, newer_names])
def test_a_newer_format_is_refused_in_a_line_that_names_both(change: Callable[[Path], None], tmp_path: Path):
    shutil.copytree(OF_TODAY / "gru", tmp_path / "gru")
    change(tmp_path / "gru")
    told = f"written in format {FORMAT_VERSION + 1}, this regard reads up to {FORMAT_VERSION}; upgrade it"
    with pytest.raises(CheckpointError, match=told) as refused:
        regard.load(tmp_path / "gru")
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_of_no_format_are_refused(tmp_path: Path):
    path = tmp_path / "some.safetensors"
    path.write_bytes(b"".join(map(bytes, tensors.chunks({"a": torch.zeros(1)}, {NAMES: "latest"}))))
    with pytest.raises(CheckpointError, match="names is no format, found 'latest'"):
        tensors.read(path)


def test_a_run_of_todays_format_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(OF_TODAY / "gru", tmp_path / "gru")
    shutil.copy(DATA / "text.txt", tmp_path)
    monkeypatch.chdir(tmp_path)
    run = regard.train(out="gru", resume=True, budget="30steps", quiet=True)
    assert run.evaluate("text.txt").scores["loss"] < SCORES["gru"]["scores"]["loss"]
