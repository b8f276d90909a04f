"""What a finished training is known by: everything that its numbers come from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.data.example import Captioned, Labelled
from regard.run.dataset import load_dataset
from regard.run.settings import Origin, Settings, resolve
from regard.storage import manifest
from regard.studies import identity
from regard.studies.identity import fingerprint, mark

LINES = [f"{'good' if i % 2 else 'bad'} words of line {i % 17} and {i}" for i in range(60)]


def text(*lines: str, folder: Path, **data: Any) -> str:
    (folder / "my.txt").write_text("\n".join(lines), encoding="utf-8")
    return fingerprint(load_dataset(settings(path=str(folder / "my.txt"), documents="line", test=0.5, **data)))


def labelled(*lines: str, folder: Path, test: float = 0.5) -> str:
    rows = [f"{line}\t{line.split()[0]}" for line in lines]
    (folder / "my.tsv").write_text("\n".join(["text\tlabel", *rows]), encoding="utf-8")
    given = {"path": str(folder / "my.tsv"), "task": "labelled", "test": test}
    return fingerprint(load_dataset(settings(**given, model="classifier")))


def settings(model: str = "fnn", train: dict[str, Any] | None = None, **data: Any) -> Settings:
    layer = {"model.name": Origin(model, "x")} | {f"data.{key}": Origin(value, "x") for key, value in data.items()}
    return resolve(layer | {f"train.{key}": Origin(value, "x") for key, value in (train or {}).items()})


@pytest.mark.parametrize("of", [text, labelled])
def test_the_same_data_has_the_same_fingerprint_wherever_it_lies(of: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert of(*LINES, folder=tmp_path) == of(*LINES, folder=tmp_path / "elsewhere")


@pytest.mark.parametrize("of", [text, labelled])
@pytest.mark.parametrize("place", [0, 7, 23, 41, 59])
def test_any_line_that_changes_changes_it(of: Any, place: int, tmp_path: Path) -> None:
    """Wherever the line falls: training, validation or test."""
    changed = [*LINES[:place], LINES[place].replace("words", "sword"), *LINES[place + 1 :]]
    assert of(*LINES, folder=tmp_path) != of(*changed, folder=tmp_path)


def judged_by(example: Any) -> Any:
    """All that is asked of data with one example in its test."""
    return SimpleNamespace(hash="same", judged=lambda: ([], [example]))


def test_an_unknown_word_of_the_test_that_changes_changes_it(tmp_path: Path) -> None:
    """To the model both are unknown; what an answer is judged by are the words themselves."""
    held_out = Labelled("a strange word", "good")
    data, other = judged_by(held_out), judged_by(replace(held_out, text="a curious word"))
    assert fingerprint(data) != fingerprint(other)
    assert fingerprint(data) == fingerprint(judged_by(replace(held_out, where="line 9")))


def test_a_picture_of_the_test_counts_by_its_pixels() -> None:
    dark, light = np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 9, np.uint8)
    found = [fingerprint(judged_by(Captioned(picture, "a square"))) for picture in (dark, light, dark.copy())]
    assert found[0] == found[2] != found[1]


def test_how_much_is_set_apart_and_for_what_counts(tmp_path: Path) -> None:
    assert labelled(*LINES, folder=tmp_path) != labelled(*LINES, folder=tmp_path, test=0.25)
    assert text(*LINES, folder=tmp_path) != text(*LINES, folder=tmp_path, valid="tail:0.2")


def test_validation_text_of_its_own_counts(tmp_path: Path) -> None:
    held = tmp_path / "held.txt"
    held.write_text("\n".join(LINES[:9]))
    first = text(*LINES, folder=tmp_path, valid=str(held))
    held.write_text("\n".join(LINES[1:10]))
    assert text(*LINES, folder=tmp_path, valid=str(held)) != first


@pytest.mark.parametrize("change", [{"seed": 1}, {"lr": 0.5}, {"budget": "3steps"}, {"length": 8}])
def test_seed_rate_budget_and_every_other_setting_count(change: dict[str, Any]) -> None:
    assert mark(settings(), "data") != mark(settings(train=change), "data")


def test_data_device_format_and_version_count(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {mark(settings(), "data"), mark(settings(), "other data")}
    monkeypatch.setattr(identity, "device_named", lambda _: SimpleNamespace(type="cuda"))
    found.add(mark(settings(), "data"))
    monkeypatch.undo()
    monkeypatch.setattr(manifest, "FORMAT_VERSION", manifest.FORMAT_VERSION + 1)
    found.add(mark(settings(), "data"))
    monkeypatch.undo()
    monkeypatch.setattr(identity, "__version__", "0.0")
    found.add(mark(settings(), "data"))
    assert len(found) == 5


def test_the_weights_that_a_fine_tuning_begins_with_count(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for sha in ("a" * 64, "b" * 64):
        monkeypatch.setattr(identity, "weights_hash", lambda _, sha=sha: sha)
        found.add(mark(settings("classifier", {"start": "runs/bert"}, task="labelled"), "data"))
    assert len(found) == 2


@pytest.mark.parametrize(("task", "refit"), [("labelled", False), ("text", "auto"), ("text", False)])
def test_a_setting_that_came_later_and_asks_for_nothing_new_leaves_the_mark_as_it_was(task: str, refit: Any) -> None:
    now = settings("classifier", {"refit": refit, "device": "cpu"}, task=task)
    told = {
        "settings": {key: part.value for key, part in now.table.items() if key not in ("train.track", "train.refit")},
        "data": "data",
        "start": None,
        "device": "cpu",
        "format": manifest.FORMAT_VERSION,
        "regard": identity.__version__,
    }
    then = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]
    assert mark(now, "data") == then


def test_a_refit_that_is_asked_for_counts() -> None:
    found = {mark(settings("classifier", {"refit": one}, task="labelled"), "data") for one in (False, True, "auto")}
    assert len(found) == 3
