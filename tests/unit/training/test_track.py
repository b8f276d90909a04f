"""Trackers: told of a start, numbers, texts and an end, in their own words, and never in the way of training."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regard.errors import UsageError
from regard.run.recipe import read_recipe
from regard.run.settings import Origin, resolve, section_of
from regard.training import settings, track
from regard.training.run_folder import read_config
from tiny_run import Recorder, run


class Heard:
    """A tracker from outside that keeps what it is told; what `fails` names it does not survive."""

    told: list[tuple[Any, ...]]
    options: dict[str, str]

    def __init__(self, of: track.TrackedRun, options: dict[str, str]) -> None:
        Heard.told, Heard.options = [("made", of.name)], options

    def _hear(self, *event: Any) -> None:
        self.told.append(event)
        if self.options.get("fails") == event[0]:
            raise ConnectionError("nobody there")

    def start(self, settings: Mapping[str, Any]) -> None:
        self._hear("start", settings["train.seed"])

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._hear("log", step, dict(metrics))

    def text(self, step: int, text: str) -> None:
        self._hear("text", step, text)

    def end(self, status: str) -> None:
        self._hear("end", status)


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = {name: track.tracker_named(name) for name in track.BUILT_IN}
    monkeypatch.setattr(track, "_registered", built_in)
    track.register_tracker("heard")(Heard)


def test_a_tracker_is_told_of_a_run_from_its_start_to_its_end(tmp_path: Path):
    run(tmp_path / "run", track="heard", sample=lambda model: "a text")
    events = [event[0] for event in Heard.told]
    assert Heard.told[:2] == [("made", "run"), ("start", 0)]
    assert Heard.told[-1] == ("end", "finished")
    written = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    numbers = [(one.pop("step"), one) for one in written]
    assert [event[1:] for event in Heard.told if event[0] == "log"] == numbers
    assert events.count("text") == sum("valid_loss" in one for one in written)


@pytest.mark.parametrize("event", ["start", "log", "text", "end"])
def test_one_that_fails_says_so_once_and_training_goes_on(tmp_path: Path, event: str):
    seen = Recorder()
    _, result = run(tmp_path / "run", track=f"heard:fails={event}", display=seen, sample=lambda model: "a text")
    assert result.step == 12
    assert [note for note in seen.notes if "heard: tracking failed (ConnectionError: nobody there)" in note] != []
    assert len([note for note in seen.notes if "tracking failed" in note]) == 1
    assert [one[0] for one in Heard.told].count(event) == 1


def test_a_run_that_fails_is_told_as_failed(tmp_path: Path):
    def broken(model: Any) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "run", track="heard", sample=broken)
    assert Heard.told[-1] == ("end", "failed")


def test_options_are_for_who_typed_them_and_never_kept(tmp_path: Path):
    run(tmp_path / "run", track="heard:uri=http://me:secret@there")
    assert Heard.options == {"uri": "http://me:secret@there"}
    assert read_config(tmp_path / "run")["train"]["track"] == "heard"
    assert not [file for file in (tmp_path / "run").rglob("*") if file.is_file() and b"secret" in file.read_bytes()]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[train]\ntrack = "mlflow:uri=http://there"\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"recipe\.toml: train\.track names trackers; their options are typed"):
        read_recipe(recipe)


def test_what_was_train_tensorboard_is_train_track(tmp_path: Path):
    assert settings.from_dict({"tensorboard": True}).track == "tensorboard"
    assert settings.from_dict({"tensorboard": False}).track is None
    told = resolve({"train.tensorboard": Origin(True, "recipe old.toml")})
    assert told.table["train.track"] == Origin("tensorboard", "recipe old.toml")
    assert resolve({section_of("tensorboard", "gpt"): Origin(False, "argument")})["train.track"] is None
    with pytest.raises(UsageError, match=r"train\.tensorboard: found 'yes'"):
        resolve({"train.tensorboard": Origin("yes", "--set")})


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("tensorbaord", r"unknown tracker 'tensorbaord', did you mean 'tensorboard'\?"),
        ("heard:uri", "options are KEY=VALUE, joined by commas, found 'uri'"),
        ("tensorboard:uri=x", "tensorboard has no option 'uri'"),
        ("wandb", "wandb is not installed or cannot be used .*; pip install wandb"),
    ],
)
def test_what_cannot_track_is_refused_before_anything_is_trained(
    asked: str, told: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=rf"train\.track: .*{told}"):
        track.refuse_absent(asked)


def test_tensorboard_reads_the_curve_that_was_written(tmp_path: Path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run(tmp_path / "run", track="tensorboard", sample=lambda model: "a text")
    found = reader.EventAccumulator(str(tmp_path / "run" / "track" / "tensorboard")).Reload()
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    expected = [(one["step"], pytest.approx(one["valid_loss"])) for one in lines if "valid_loss" in one]
    assert [(one.step, one.value) for one in found.Scalars("valid_loss")] == expected
    assert {"settings/text_summary", "sample/text_summary", "status/text_summary"} <= set(found.Tags()["tensors"])


def test_wandb_is_asked_in_its_own_words_and_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[Any] = []
    theirs = SimpleNamespace(
        log=lambda values, step: calls.append(("log", step, values)),
        summary={},
        finish=lambda exit_code: calls.append(("finish", exit_code)),
    )
    wandb: Any = ModuleType("wandb")
    wandb.init = lambda **given: calls.append(("init", given)) or theirs
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    run(tmp_path / "group" / "run", track="wandb:project=mine,tags=a+b", sample=lambda model: "a text")
    given = calls[0][1]
    assert (given["project"], given["name"], given["group"], given["mode"]) == ("mine", "run", "group", "offline")
    assert given["tags"] == ["a", "b"]
    assert given["config"]["train.seed"] == 0
    assert given["dir"] == str(tmp_path / "group" / "run" / "track" / "wandb")
    assert ("log", 12, {"sample": "a text"}) in calls
    assert calls[-1] == ("finish", 0)
    assert theirs.summary == {"status": "finished"}


def test_mlflow_is_asked_in_its_own_words_and_keeps_all_in_the_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls: list[tuple[Any, ...]] = []

    class Client:
        def __init__(self, tracking_uri: str) -> None:
            calls.append(("uri", tracking_uri))

        def get_experiment_by_name(self, name: str) -> None:
            calls.append(("experiment", name))

        def create_experiment(self, name: str, artifact_location: str) -> str:
            return "7"

        def create_run(self, experiment: str, run_name: str) -> Any:
            calls.append(("run", experiment, run_name))
            return SimpleNamespace(info=SimpleNamespace(run_id="id"))

        def log_batch(self, run_id: str, params: Any = (), metrics: Any = ()) -> None:
            assert len(params) <= 100
            calls.append(("batch", dict(params), [(name, step) for name, _, _, step in metrics]))

        def log_text(self, run_id: str, text: str, file: str) -> None:
            calls.append(("text", text, file))

        def set_terminated(self, run_id: str, status: str) -> None:
            calls.append(("end", run_id, status))

    mlflow: Any = ModuleType("mlflow")
    mlflow.MlflowClient = Client
    entities: Any = ModuleType("mlflow.entities")
    entities.Param, entities.Metric = (lambda *parts: parts), (lambda *parts: parts)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run(tmp_path / "group" / "run", track="mlflow", sample=lambda model: "a text")
    place = tmp_path / "group" / "run" / "track" / "mlflow"
    assert calls[:3] == [("uri", f"sqlite:///{place}/mlflow.db"), ("experiment", "group"), ("run", "7", "run")]
    assert calls[3][1]["train.seed"] == "0"
    assert ("valid_loss", 12) in [pair for call in calls[4:] if call[0] == "batch" for pair in call[2]]
    assert ("text", "a text", "samples/00000012.txt") in calls
    assert calls[-1] == ("end", "id", "FINISHED")


def test_nothing_of_a_tracker_is_imported_unless_it_is_asked_for():
    code = (
        "import sys, regard.training.loop\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('wandb', 'mlflow', 'tensorboard')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
