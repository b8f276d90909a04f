"""Class weights: what they are, that the losses use them as torch and scikit-learn do, and who refuses them."""

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
from regard.data.batch import NOT_COUNTED, Batch
from regard.errors import UsageError
from regard.models.gram_classifier import ExampleTexts
from regard.training.class_weights import class_weights
from regard.training.losses import model_loss, smoothed_loss

CLASSES = ("ham", "rare", "spam")
NUMBERS = np.array([0] * 12 + [1] + [2] * 3)


def test_balanced_weights_are_those_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.utils.class_weight")
    wanted = sklearn.compute_class_weight("balanced", classes=np.arange(3), y=NUMBERS)
    found = class_weights("balanced", CLASSES, NUMBERS)
    assert found is not None
    np.testing.assert_allclose(found, wanted)


def test_written_weights_keep_their_ratios_and_have_a_mean_of_one_over_the_training_part():
    found = class_weights("rare=6, ham = 2", CLASSES, NUMBERS)
    assert found is not None
    np.testing.assert_allclose(found / found[2], [2, 6, 1])
    assert found[NUMBERS].mean() == pytest.approx(1)


def test_a_class_that_is_none_and_weights_that_are_none_are_refused_with_a_line():
    with pytest.raises(UsageError, match="no class 'hamm', did you mean 'ham'"):
        class_weights("hamm=2", CLASSES, NUMBERS)
    for bad in ("heavy", "ham=0", "ham=-1", "ham=nan", "=2", "ham=1,ham=2", ""):
        with pytest.raises(UsageError, match=r"train\.class_weights: found .* allowed is none, balanced"):
            regard.train("linear", "world:reviews", class_weights=bad)


@pytest.mark.parametrize("name", ["classifier", "tagger"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_loss_of_a_network_is_cross_entropy_with_weights_while_training_only(name: str, epsilon: float):
    torch.manual_seed(0)
    spec = DataSpec(vocab_size=11, n_classes=3, spelled=name == "tagger")
    model = entry(name).config(spec, "tiny", dropout=0.0).build().double()
    tokens = torch.randint(1, 11, (4, 6) if name == "classifier" else (4, 6, 17))
    targets = torch.tensor([0, 2, 1, 2]) if name == "classifier" else torch.randint(0, 3, (4, 6))
    if name == "tagger":
        targets[1, 4:] = NOT_COUNTED
    batch, weights = Batch(tokens, targets, torch.full((4,), 6), list(range(4))), torch.tensor([0.5, 3.0, 1.25])
    total, count, _ = model_loss(model, batch, label_smoothing=epsilon, class_weights=weights)
    logits = model.head(model(tokens)[0]).flatten(0, -2)
    wanted = F.cross_entropy(logits, targets.flatten(), weight=weights.double(), label_smoothing=epsilon)
    by_weight = weights.double()[targets[targets != NOT_COUNTED]].sum()
    torch.testing.assert_close(total, wanted * by_weight)
    assert int(count) == int((targets != NOT_COUNTED).sum())
    plain, _, _ = model_loss(model.eval(), batch, label_smoothing=epsilon, class_weights=weights)
    torch.testing.assert_close(plain, smoothed_loss(logits, targets.flatten(), 0.0))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_linear_model_with_weights_is_that_of_scikit_learn(n_classes: int, loss: str):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    spec, weights = DataSpec(vocab_size=9, n_classes=n_classes), (4.0, 0.5, 1.5)[:n_classes]
    config = entry("linear").config(spec, "tiny", weights="tfidf", loss=loss, strength=2.0, tolerance=1e-9)
    model, data = config.build(), ExampleTexts(n_classes)
    model.fit(data, FitSettings(class_weights=weights), Nobody())
    blocks = model.learn_grams(data.column("text"), Nobody())
    x = model.values(blocks).matrix().to_dense().numpy()
    by_class = dict(enumerate(weights))
    if loss == "logistic":
        other = LogisticRegression(C=2.0, class_weight=by_class, tol=1e-10, max_iter=10_000).fit(x, data.labels)
    else:
        # Its intercept is penalised, the less the larger the column that stands for it.
        free = {"intercept_scaling": 1e4, "tol": 1e-9, "max_iter": 1_000_000, "dual": False}
        # Its class_weight is for one side of each class against the others; here an example has its weight everywhere.
        other = LinearSVC(C=2.0, **free).fit(x, data.labels, sample_weight=np.array(weights)[data.labels])
    z = x @ model.weights.double().numpy() + model.bias.double().numpy()
    wanted = other.decision_function(x).reshape(len(x), -1)
    if loss == "logistic" and n_classes > 2:
        z, wanted = z - z.mean(1, keepdims=True), wanted - wanted.mean(1, keepdims=True)
    np.testing.assert_allclose(z, wanted, atol=2e-3)


def test_balanced_weights_make_naive_bayes_take_every_class_for_as_likely():
    model = entry("naive_bayes").config(DataSpec(vocab_size=9, n_classes=4), "tiny").build()
    data = ExampleTexts(4)
    found = class_weights("balanced", ("a", "b", "c", "d"), data.labels)
    assert found is not None
    model.fit(data, FitSettings(class_weights=tuple(found)), Nobody())
    np.testing.assert_allclose(model.prior.exp().numpy(), 0.25)


@pytest.fixture(scope="module")
def mostly_ham(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rare") / "mail.csv"
    rows = [
        f"{'spam' if i % 12 == 0 else 'ham'},buy {'now' if i % 4 == 0 else 'or sell'} w{i % 47}" for i in range(600)
    ]
    path.write_text("label,text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_rare_class_is_found_more_often_with_weights_and_a_network_trains_with_them(mostly_ham: Path, tmp_path: Path):
    recall, quiet = {}, {"valid": "hash:0.3", "quiet": True}
    for weights in ("none", "balanced"):
        out = tmp_path / weights
        run = regard.train("linear", mostly_ham, out=out, order=1, characters=(), class_weights=weights, **quiet)
        recall[weights] = run.evaluate().scores["balanced_accuracy"]
    assert recall["none"] == 0.5 < recall["balanced"]
    tiny = {"size": "tiny", "budget": "2steps", "device": "cpu", "quiet": True}
    run = regard.train("dan", mostly_ham, out=tmp_path / "dan", class_weights="spam=9,ham=1", **tiny)
    assert run.config["train"]["class_weights"] == "spam=9,ham=1"


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        ("majority", None, "Majority has no loss in which classes could count more or less"),
        ("crf", "world:tags?train=90&valid=4", "no loss in which classes"),
        ("lstm", "world:ab?train=9&valid=4", "train.class_weights means nothing to the task text; leave it out"),
        ("ngram", "world:ab?train=9&valid=4", "train.class_weights means nothing to the task text; leave it out"),
    ],
)
def test_what_has_no_classes_to_weigh_refuses(
    model: str, data: str | None, message: str, mostly_ham: Path, tmp_path: Path
):
    settings = {"size": "tiny", "budget": "1steps", "quiet": True, "class_weights": "balanced"}
    with pytest.raises(UsageError, match=message):
        regard.train(model, data or mostly_ham, out=tmp_path / "run", **settings)
    assert not list(tmp_path.glob("run/config.json"))
