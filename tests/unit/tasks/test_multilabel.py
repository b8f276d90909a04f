"""Several labels for a text: the head's loss, the foot beside scikit-learn, a run's verbs, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Nobody
from regard.core.registry import entry
from regard.data.worlds import world
from regard.errors import CheckpointError, DataError, UsageError
from regard.layers.binary_head import BinaryHead
from regard.models.gram_classifier import ExampleTexts
from regard.tasks.threshold import Threshold, saved_threshold, threshold
from regard.training import run_folder
from regard.training.run_folder import CALIBRATION

DATA = "world:topics?train=300&valid=80"
TEXT = "he wrote of the song . we talked about the rain ."
TINY = {"size": "tiny", "device": "cpu", "quiet": True}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    return regard.train("linear_labels", DATA, out=tmp_path_factory.mktemp("several") / "linear", quiet=True)


def test_the_loss_is_binary_cross_entropy_and_an_ensemble_averages_chances():
    torch.manual_seed(0)
    head = BinaryHead(4, 3).double()
    vectors, targets = torch.randn(5, 4).double(), (torch.rand(5, 3) < 0.5).double()
    odds = head(vectors)
    plain = F.binary_cross_entropy_with_logits(odds, targets, reduction="sum")
    torch.testing.assert_close(head(vectors, targets), plain)
    smooth = F.binary_cross_entropy_with_logits(odds, targets * 0.9 + 0.05, reduction="sum")
    torch.testing.assert_close(head(vectors, targets, 0.1), smooth)
    two = torch.stack([odds, -3 * odds])
    torch.testing.assert_close(head.averaged(two).sigmoid(), two.sigmoid().mean(0))


def test_each_label_is_a_logistic_regression_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    model = entry("linear_labels").config(DataSpec(n_classes=3), "tiny", strength=2.0, tolerance=1e-9).build()
    data = ExampleTexts(3)
    model.fit(data, FitSettings(), Nobody())
    x = model.values(model.learn_grams(data.column("text"), Nobody())).matrix().to_dense().numpy()
    for number in range(3):
        other = linear_model.LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(x, data.hits[:, number])
        z = x @ model.weights[:, number].double().numpy() + float(model.bias[number])
        np.testing.assert_allclose(z, other.decision_function(x), atol=1e-3)


def test_labels_above_the_threshold_are_told_and_the_threshold_is_kept(run: regard.Run):
    answer = run.answers([TEXT])[0]
    assert set(answer.details["labels"]) == {"music", "weather"}
    assert answer.text == ", ".join(answer.details["labels"])
    kept = run.processor.threshold
    assert kept.after >= kept.before
    scores = run.evaluate().scores
    assert scores["micro_f1"] == pytest.approx(kept.after)
    assert world("topics").best["micro_f1"] > scores["micro_f1"] > 0.7  # pyright: ignore[reportAttributeAccessIssue]
    assert regard.load(run.path).answers([TEXT]) == [answer]
    assert run.answers(["nothing of it"])[0].details["labels"] == [] or kept.value < 0.2


def test_a_damaged_threshold_is_refused(run: regard.Run):
    file = run.path / CALIBRATION
    kept = file.read_bytes()
    file.write_bytes(kept[:-1] + b" ")
    try:
        with pytest.raises(CheckpointError, match=CALIBRATION):
            regard.load(run.path)
    finally:
        file.write_bytes(kept)


def test_a_network_trains_is_explained_and_its_ensemble_answers(tmp_path: Path):
    run = regard.train("dan", DATA, out=tmp_path / "dan", budget="6steps", ensemble=2, **TINY)
    assert run.config["model"]["name"] == "multilabeller"
    part = regard.load(run.path / "parts" / "0")
    chances = part.answers([TEXT])[0].details["probabilities"]
    assert part.explain(TEXT).about["number"] == pytest.approx(max(chances.values()), rel=1e-4)
    assert run.evaluate().scores.keys() >= {"micro_f1", "macro_f1", "subset_accuracy", "hamming", "loss"}


def test_the_rates_of_labels_are_counted(tmp_path: Path):
    run = regard.train("label_rates", DATA, out=tmp_path / "rates", calibrate=False, quiet=True)
    labels = [one.labels for one in world("topics", train=300, valid=80).examples("train")]  # pyright: ignore
    told = run.answers([TEXT])[0].details["probabilities"]
    assert told["food"] == pytest.approx((sum("food" in one for one in labels) + 0.5) / 301, rel=1e-5)
    assert run.processor.threshold.value == 0.5
    assert not (run.path / CALIBRATION).exists()


def test_a_label_that_only_the_held_out_part_has_is_said_and_counts_as_missed(tmp_path: Path):
    file, other = tmp_path / "films.tsv", tmp_path / "held.tsv"
    rows = [f"a film about {n} ships\t{'sea|war' if n % 2 else 'love'}" for n in range(30)]
    file.write_text("text\tgenres\n" + "\n".join(rows) + "\n", encoding="utf-8")
    other.write_text("text\tgenres\nsome other film\tsea|opera\nand one more\tlove|war\n", encoding="utf-8")
    run = regard.train("label_rates", file, out=tmp_path / "run", valid=str(other), quiet=True)
    assert "1 labels of the held-out part are not in the training part, such as 'opera'" in run.dataset.notes[-1]
    assert {row["label"] for row in run.evaluate().tables["by_label"]} >= {"opera"}


def test_one_label_alone_and_settings_of_classes_are_refused(tmp_path: Path):
    file = tmp_path / "one.tsv"
    file.write_text("text\tlabels\n" + "".join(f"film {n} here\twar\n" for n in range(30)), encoding="utf-8")
    with pytest.raises(DataError, match="at least two classes, found only 'war'"):
        regard.train("dan", file, task="multilabel", out=tmp_path / "run", **TINY)
    with pytest.raises(UsageError, match=r"train\.class_weights means nothing to the task multilabel"):
        regard.train("dan", DATA, class_weights="balanced", out=tmp_path / "run", **TINY)
    with pytest.raises(UsageError, match=r"data\.separator must be a mark"):
        regard.train("dan", DATA, separator="", out=tmp_path / "run", **TINY)


def test_a_temperature_makes_the_chances_of_labels_true():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3000, 4)) * 1.5
    hits = rng.random(truth.shape) < 1 / (1 + np.exp(-truth))
    found = threshold(3 * truth, hits)  # three times as sure as it should be
    assert found.temperature == pytest.approx(3, rel=0.1)
    assert found.error_after < 0.02 < found.error_before
    assert "temperature 3" in found.line or "temperature 2.9" in found.line
    same = threshold(truth, hits)
    assert same.temperature == pytest.approx(1, rel=0.1)


def test_a_run_from_before_there_was_a_temperature_is_read(tmp_path: Path):
    facts = {"value": 0.4, "before": 0.1, "after": 0.2, "examples": 9, "told": ""}
    (tmp_path / CALIBRATION).write_text(json.dumps(facts), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_folder, "has", lambda folder, name: True)
        assert saved_threshold(lambda name: tmp_path / name) == Threshold(0.4, 0.1, 0.2, 9)
