"""A run's chances are made truer on what was held out; the temperature is kept, checked, and gone with the weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.errors import CheckpointError
from regard.evaluation.calibration import best_temperature
from regard.explain.view import Bars
from regard.run.settings import Origin
from regard.run.train import plan, train_run
from regard.tasks import labelled
from regard.tasks.calibration import FEWEST, Calibration, calibration
from regard.training.run_folder import CALIBRATION, verify_run

TEXT = "buy now or never w1"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels that follow from words four times of five: naive Bayes, which counts words twice, is too sure of them."""
    path, random = tmp_path_factory.mktemp("labels") / "mail.tsv", np.random.default_rng(0)
    rows = []
    for i in range(900):
        spam = random.random() < 0.5
        words = "buy now or never" if spam == (random.random() < 0.8) else "see you at home"
        rows.append(f"{words} w{i % 300}\t{'spam' if spam else 'ham'}")
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def runs(table: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, regard.Run]:
    folder, same = tmp_path_factory.mktemp("runs"), {"valid": "hash:0.4", "quiet": True}
    return {on: regard.train("naive_bayes", table, out=folder / str(on), calibrate=on, **same) for on in (True, False)}


def test_chances_come_nearer_to_the_truth_and_no_answer_changes(runs: dict[bool, regard.Run]):
    with_it, without = runs[True].evaluate(), runs[False].evaluate()
    assert with_it.scores["accuracy"] == without.scores["accuracy"]
    assert with_it.scores["loss"] < without.scores["loss"]
    assert with_it.scores["calibration_error"] < 0.5 * without.scores["calibration_error"]
    assert sum(row["count"] for row in with_it.tables["reliability"]) == with_it.scores["examples"]
    found: Calibration = runs[True].processor.calibration
    assert found.temperature > 1.5
    assert found.before == pytest.approx(without.scores["calibration_error"], abs=1e-6)
    assert found.after == pytest.approx(with_it.scores["calibration_error"], abs=1e-6)


def test_the_chances_of_an_answer_are_those_of_its_logits_by_the_temperature(runs: dict[bool, regard.Run]):
    plain, told = (runs[on].answers([TEXT])[0].details["probabilities"] for on in (False, True))
    z = np.log([plain["ham"], plain["spam"]]) / runs[True].processor.temperature
    np.testing.assert_allclose([told["ham"], told["spam"]], np.exp(z) / np.exp(z).sum(), rtol=1e-5)
    (shown,) = runs[True].explain(TEXT, view="answer").panels
    assert isinstance(shown, Bars)
    assert max(shown.values) == pytest.approx(max(told.values()), rel=1e-4)


def test_it_is_kept_in_the_run_folder_checked_and_absent_from_older_runs(runs: dict[bool, regard.Run]):
    run = runs[True]
    assert verify_run(run.path)[CALIBRATION] == "ok"
    assert regard.load(run.path).answers([TEXT]) == run.answers([TEXT])
    assert not (runs[False].path / CALIBRATION).exists()
    assert regard.load(runs[False].path).processor.temperature == 1.0
    file = run.path / CALIBRATION
    kept = file.read_bytes()
    file.write_bytes(kept.replace(b"temperature", b"temperaturf"))
    try:
        with pytest.raises(CheckpointError, match=CALIBRATION):
            regard.load(run.path)
    finally:
        file.write_bytes(kept)


def test_the_end_of_a_training_says_what_was_found(runs: dict[bool, regard.Run], table: Path, tmp_path: Path):
    changes = {"model.name": "naive_bayes", "data.path": str(table), "data.valid": "hash:0.4"}
    job = plan(
        recipe=None, changes={key: Origin(value, "test") for key, value in changes.items()}, out=tmp_path / "run"
    )
    run, result = train_run(job)
    outcome = run.task.outcome(run, result)
    line = next(line for line in outcome.lines if "probabilities:" in line)
    assert "temperature" in line
    assert "expected calibration error" in line
    assert json.loads(json.dumps(outcome.facts["calibration"])) == outcome.facts["calibration"]


def test_a_network_has_one_too_and_a_training_that_goes_on_finds_it_anew(table: Path, tmp_path: Path):
    same = {"size": "tiny", "device": "cpu", "quiet": True}
    first = regard.train("dan", table, out=tmp_path / "dan", budget="4steps", lr=0.05, ema=0.0, linear=False, **same)
    assert first.processor.calibration.examples >= FEWEST
    again = regard.train(out=tmp_path / "dan", budget="40steps", resume=True, quiet=True)
    assert again.processor.calibration != first.processor.calibration
    assert regard.load(tmp_path / "dan").processor.calibration == again.processor.calibration


def test_too_few_examples_and_a_temperature_that_does_not_help_leave_chances_as_they_are():
    few = calibration(np.zeros((FEWEST - 1, 2)), np.zeros(FEWEST - 1, np.int64))
    assert (few.temperature, few.line) == (
        1.0,
        "probabilities: as the model gives them, 49 held-out examples are too few to find a temperature by",
    )
    random = np.random.default_rng(3)
    logits = np.log(random.dirichlet([1.0, 1.0], 400))
    labels = np.array([random.choice(2, p=np.exp(one)) for one in logits])  # chances that are true
    found = calibration(logits, labels)
    assert found.temperature in (1.0, pytest.approx(best_temperature(logits, labels)))
    assert found.after <= found.before


def test_of_very_many_classes_it_is_told_that_not_all_of_what_is_held_out_is_read(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(labelled, "ANSWERS", 2 * 7)
    run = regard.train("naive_bayes", table, out=tmp_path / "r", quiet=True)
    held_out = len(run.dataset.examples)
    assert held_out > FEWEST
    found = run.processor.calibration
    assert (found.temperature, found.examples) == (1.0, 7)
    assert found.told == (
        f"7 held-out examples are too few to find a temperature by: with 2 classes no more of the {held_out} examples "
        f"are read at a time"
    )
