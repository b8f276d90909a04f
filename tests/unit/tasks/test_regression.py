"""A number for a text, from the table to the answer: the head's loss, the foot beside scikit-learn, a run's verbs."""

from __future__ import annotations

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
from regard.errors import DataError, UsageError
from regard.layers.number_head import NumberHead
from regard.models.gram_classifier import ExampleTexts

TINY = {"size": "tiny", "device": "cpu", "quiet": True}
DATA = "world:ratings?train=200&valid=60"
PRAISE, BLAME = "the plot is superb . the film is brilliant .", "the plot is awful . the film is terrible ."


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    return regard.train("ridge", DATA, out=tmp_path_factory.mktemp("rated") / "ridge", quiet=True)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_loss_of_a_number_is_that_of_torch_and_what_does_not_count_adds_nothing(loss: str):
    torch.manual_seed(0)
    head = NumberHead(4, loss).double()  # pyright: ignore[reportArgumentType]
    vectors, targets = torch.randn(6, 4).double(), 3 * torch.randn(6).double()
    told = head(vectors)
    assert told.shape == (6, 1)
    wanted = F.mse_loss if loss == "squared" else lambda a, b, reduction: 2 * F.huber_loss(a, b, reduction=reduction)
    torch.testing.assert_close(head(vectors, targets), wanted(told[:, 0], targets, reduction="sum"))
    targets[2] = torch.nan
    rest = [0, 1, 3, 4, 5]
    torch.testing.assert_close(head(vectors, targets), head(vectors[rest], targets[rest]))
    torch.testing.assert_close(NumberHead.averaged(torch.stack([told, 3 * told])), 2 * told)


def test_ridge_is_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    model = entry("ridge").config(DataSpec(), "tiny", strength=2.0, tolerance=1e-9).build()
    data = ExampleTexts(1)
    model.fit(data, FitSettings(), Nobody())
    x = model.values(model.learn_grams(data.column("text"), Nobody())).matrix().to_dense().numpy()
    other = linear_model.Ridge(alpha=1 / 2.0, tol=1e-12).fit(x, data.numbers)
    np.testing.assert_allclose(model.weights[:, 0].numpy(), other.coef_, atol=1e-5)
    assert float(model.bias) == pytest.approx(other.intercept_, abs=1e-5)


def test_ridge_takes_the_strength_that_tells_held_out_numbers_best(run: regard.Run):
    fit = run.config["fit"]
    assert fit["strength"] == float(min(fit["losses"], key=fit["losses"].get))
    assert run.evaluate().scores["loss"] == pytest.approx(min(fit["losses"].values()), rel=1e-6)


def test_answers_are_in_the_unit_of_the_data_and_scores_near_the_best(run: regard.Run):
    good, bad = (one.details["number"] for one in run.answers([PRAISE, BLAME]))
    assert bad < 2 < 4 < good
    assert run.generate(PRAISE) == f"{good:.2f}"
    scores = run.evaluate().scores
    best = world("ratings").best  # pyright: ignore[reportAttributeAccessIssue]
    assert best["mae"] < scores["mae"] < 0.6
    assert scores["r2"] > 0.6
    assert regard.load(run.path).answers([PRAISE])[0].details["number"] == good


def test_evidence_sums_to_the_number_that_is_told(run: regard.Run):
    found = run.model.evidence(PRAISE)
    told = float(found.base[0] + found.parts[:, 0].sum()) * run.processor.scale + run.processor.centre
    assert told == pytest.approx(run.answers([PRAISE])[0].details["number"], rel=1e-5)
    assert "superb" in str(run.explain(PRAISE).about)


def test_a_network_trains_is_explained_in_the_unit_of_the_data_and_goes_on(tmp_path: Path):
    run = regard.train("dan", DATA, out=tmp_path / "dan", budget="150steps", lr=0.03, pooling="last", **TINY)
    assert run.config["model"]["name"] == "regressor"
    assert run.evaluate().scores["spearman"] > 0.5
    view = run.explain(PRAISE)
    assert view.about["number"] == pytest.approx(run.answers([PRAISE])[0].details["number"], rel=1e-4)
    again = regard.train(out=tmp_path / "dan", budget="152steps", resume=True, quiet=True)
    assert again.processor.hash == run.processor.hash


def test_the_mean_of_an_ensemble_is_the_mean_of_its_numbers(tmp_path: Path):
    run = regard.train("dan", DATA, out=tmp_path / "two", budget="4steps", ensemble=2, **TINY)
    parts = [regard.load(run.path / "parts" / str(n)).answers([PRAISE])[0].details["number"] for n in range(2)]
    assert run.answers([PRAISE])[0].details["number"] == pytest.approx(sum(parts) / 2, rel=1e-5)


def test_a_column_that_is_named_makes_whole_numbers_a_regression(tmp_path: Path):
    file = tmp_path / "stars.csv"
    rows = [
        f"the {'food' if n % 2 else 'soup'} was {'fine' if n % 5 > 2 else 'cold'} {n},{n % 5 + 1}" for n in range(80)
    ]
    file.write_text("text,stars\n" + "\n".join(rows) + "\n", encoding="utf-8")
    run = regard.train("average", file, out=tmp_path / "named", number="stars", quiet=True)
    assert run.task.name == "regression"
    assert abs(run.answers(["anything"])[0].details["number"] - 3) < 0.2


def test_numbers_that_are_named_as_labels_are_told_of_the_setting_for_numbers(tmp_path: Path):
    file = tmp_path / "rooms.csv"
    file.write_text("text,rent\n" + "".join(f"a room {n} here,{n}.25\n" for n in range(40)), encoding="utf-8")
    with pytest.raises(DataError, match=r"does not occur .* data\.number=COLUMN learns numbers as such"):
        regard.train("majority", file, label="rent", task="labelled", out=tmp_path / "run", quiet=True)


def test_numbers_that_are_all_the_same_and_settings_of_classes_are_refused(tmp_path: Path):
    file = tmp_path / "same.csv"
    file.write_text("text,price\n" + "".join(f"room {n} here,2.5\n" for n in range(40)), encoding="utf-8")
    told = {"task": "regression", "out": tmp_path / "run", **TINY}
    with pytest.raises(DataError, match=r"different numbers to learn from, found only 2.5 in the"):
        regard.train("dan", file, **told)
    with pytest.raises(UsageError, match=r"train\.class_weights means nothing to the task regression"):
        regard.train("dan", DATA, class_weights="balanced", **told)
    with pytest.raises(UsageError, match=r"train\.label_smoothing: a number has no other classes"):
        regard.train("dan", DATA, label_smoothing=0.1, **told)
    assert not (tmp_path / "run").exists()
