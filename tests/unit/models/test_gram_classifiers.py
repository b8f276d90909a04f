"""Naive Bayes and linear models of text, against float64 loops and against scikit-learn."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.core.context import Context
from regard.core.fitted import FitSettings, Nobody
from regard.core.model import logits_of
from regard.errors import CheckpointError, DataError
from regard.fitting.classes import log_count_ratios
from regard.fitting.grams import WORD
from regard.models import gram_classifier
from regard.models.gram_classifier import GramClassifier
from regard.models.linear import LinearConfig
from regard.models.majority import MajorityConfig
from regard.models.naive_bayes import NaiveBayesConfig
from regard.storage import manifest, tensors

GOOD, BAD = ("good", "fine", "warm", "clear"), ("bad", "poor", "cold", "dull")


@dataclass(frozen=True)
class Given:
    """The examples of a fit."""

    texts: list[str]
    labels: np.ndarray

    @property
    def rows(self) -> Given:
        return self

    def column(self, name: str) -> list[str]:
        return self.texts


def made_up(n: int = 80, n_classes: int = 2, seed: int = 0) -> Given:
    chance = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    kinds = (GOOD, BAD, ("who", "where", "when"))
    noise = ("the", "a", "day", "film", "it's", "!", ",")
    texts = [
        " ".join(
            chance.choice(kinds[label] if chance.random() < 0.3 else noise, size=1)[0]
            for _ in range(chance.integers(12))
        )
        for label in labels
    ]
    return Given(texts, labels)


def fitted(config: Any, given: Given) -> Any:
    model = config.build()
    model.fit(given, FitSettings(), Nobody())
    return model


def answers(model: GramClassifier, texts: list[str]) -> torch.Tensor:
    """log p of each class, texts side by side with padding that must not count."""
    codes = [torch.tensor([ord(character) for character in text], dtype=torch.int64) for text in texts]
    lengths = torch.tensor([len(code) for code in codes])
    tokens = torch.full((len(codes), int(lengths.max())), ord("x"))
    for row, code in zip(tokens, codes, strict=True):
        row[: len(code)] = code
    return logits_of(model.double(), tokens, context=Context(lengths=lengths))


@pytest.mark.parametrize("counting", ["multinomial", "binary"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [1.0, 0.25])
def test_naive_bayes_is_bayes_rule_counted_by_a_loop(counting: Any, n_classes: int, alpha: float):
    given = made_up(n_classes=n_classes)
    model = fitted(NaiveBayesConfig(n_classes, order=2, counting=counting, alpha=alpha), given)

    def grams(text: str) -> list[str]:
        words = WORD.findall(text.lower())
        found = words + [f"{a} {b}" for a, b in itertools.pairwise(words)]
        return sorted(set(found)) if counting == "binary" else found

    counts: dict[tuple[str, int], int] = {}
    for text, label in zip(given.texts, given.labels.tolist(), strict=True):
        for gram in grams(text):
            counts[gram, label] = counts.get((gram, label), 0) + 1
    known = {gram for gram, _ in counts}
    totals = [sum(count for (_, label), count in counts.items() if label == c) for c in range(n_classes)]
    asked = [*given.texts[:20], "good never met", "", "warm warm warm cold"]
    expected = []
    for text in asked:
        scores = [math.log(float((given.labels == c).mean())) for c in range(n_classes)]
        for gram in grams(text):
            for c in range(n_classes if gram in known else 0):
                chance = (counts.get((gram, c), 0) + alpha) / (totals[c] + alpha * len(known))
                scores[c] += math.log(chance)
        top = max(scores)
        norm = top + math.log(sum(math.exp(score - top) for score in scores))
        expected.append([score - norm for score in scores])
    assert np.allclose(answers(model, asked).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("counting", ["multinomial", "binary"])
def test_naive_bayes_is_that_of_scikit_learn(counting: Any):
    text, bayes = pytest.importorskip("sklearn.feature_extraction.text"), pytest.importorskip("sklearn.naive_bayes")
    given = made_up(n_classes=3)
    model = fitted(NaiveBayesConfig(3, order=2, counting=counting), given)
    peer = text.CountVectorizer(ngram_range=(1, 2), token_pattern=WORD.pattern, binary=counting == "binary")
    theirs = bayes.MultinomialNB().fit(peer.fit_transform(given.texts), given.labels)
    expected = theirs.predict_log_proba(peer.transform(given.texts))
    assert np.allclose(answers(model, given.texts).numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_model_of_tf_idf_is_that_of_scikit_learn(loss: Any, n_classes: int):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    given = made_up(n_classes=n_classes)
    config = LinearConfig(n_classes, order=2, weights="tfidf", loss=loss, strength=2.0, tolerance=1e-8)
    model = fitted(config, given)
    peer = text.TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD.pattern, sublinear_tf=True)
    features = peer.fit_transform(given.texts)
    own = answers(model, given.texts)
    if loss == "logistic":
        kind = pytest.importorskip("sklearn.linear_model").LogisticRegression
        theirs = kind(C=2.0, tol=1e-8, max_iter=5000).fit(features, given.labels)
        assert np.allclose(own.exp().numpy(), theirs.predict_proba(features), atol=1e-4)
    else:
        kind = pytest.importorskip("sklearn.svm").LinearSVC
        theirs = kind(C=2.0, tol=1e-9, dual=False, intercept_scaling=1000, max_iter=20000).fit(features, given.labels)
        margins = theirs.decision_function(features)
        same = own[:, 1] - own[:, 0] if n_classes == 2 else own - own.mean(1, keepdim=True)
        expected = margins if n_classes == 2 else margins - margins.mean(1, keepdims=True)
        assert np.allclose(same.numpy(), expected, atol=2e-3)


def test_the_log_count_ratio_is_that_of_the_paper():
    given = Given(["a b", "a", "b c", "c"], np.array([0, 0, 1, 1]))
    config = LinearConfig(2, order=1, weights="nb")
    rows = config.build().learn_grams(given.texts, Nobody())[0]
    found = log_count_ratios(rows, given.labels, 2)[:, 0]
    p, q = (
        np.array([0, 1, 2]) + 1,
        np.array([2, 1, 0]) + 1,
    )  # a, b, c in the texts of the second class, and of the first
    assert np.allclose(found.numpy(), np.log((p / p.sum()) / (q / q.sum())))


@pytest.mark.parametrize("config", [LinearConfig(3, characters=(2, 4)), NaiveBayesConfig(3), MajorityConfig(3)])
def test_a_model_is_the_same_out_of_its_file(config: Any, tmp_path: Path):
    given = made_up(n_classes=3)
    model = fitted(config, given)
    path = tmp_path / "model.safetensors"
    manifest.write_file(path, tensors.chunks(model.stored()))
    again = config.build()
    again.open_file(path)
    assert torch.equal(answers(again, given.texts), answers(model, given.texts))


@pytest.mark.parametrize(
    ("config", "name", "change"),
    [
        (LinearConfig(3), "weights", lambda w: w[:-1]),
        (LinearConfig(3), "weights", lambda w: w * float("nan")),
        (LinearConfig(3), "bias", lambda b: b[:2]),
        (LinearConfig(3), "words", lambda w: torch.cat([w, w[:1] * 0 + 255])),
        (LinearConfig(3), "words", lambda w: torch.cat([w, torch.tensor([10], dtype=torch.uint8), w])),
        (LinearConfig(3), "idf", lambda i: i.double()),
        (NaiveBayesConfig(3), "classes", lambda c: c + 3),
        (NaiveBayesConfig(3), "first", lambda f: f.flip(0)),
        (NaiveBayesConfig(3), "seen", lambda s: s[1:]),
        (NaiveBayesConfig(3), "prior", lambda p: p[:1]),
        (MajorityConfig(3), "log_p", lambda p: p[:1]),
    ],
)
def test_a_damaged_file_is_refused(config: Any, name: str, change: Any, tmp_path: Path):
    stored = fitted(config, made_up(n_classes=3)).stored()
    path = tmp_path / "model.safetensors"
    manifest.write_file(path, tensors.chunks(stored | {name: change(stored[name])}))
    with pytest.raises(CheckpointError, match="not the file of such a"):
        config.build().open_file(path)


def test_more_weights_than_fit_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("regard.fitting.model.MOST_WEIGHTS", 100)
    with pytest.raises(DataError, match="or take naive_bayes"):
        fitted(LinearConfig(3), made_up(n_classes=3))


def test_naive_bayes_of_many_classes_keeps_only_what_was_seen():
    n = 20_000
    given = Given([f"word{i % 50} w{i}" for i in range(n)], np.arange(n))
    model = fitted(NaiveBayesConfig(n, order=1), given)
    assert sum(tensor.numel() for tensor in model.stored().values()) < 40 * n
    assert answers(model, ["word7 w1007"]).argmax(-1).tolist() == [1007]


def test_n_grams_of_few_texts_are_left_out():
    given = Given(["a b", "a c", "a d"], np.array([0, 1, 0]))
    model = fitted(NaiveBayesConfig(2, order=1, min_texts=2), given)
    assert model.evidence("a b c d").names == ["a"]


@pytest.mark.parametrize("config", [LinearConfig(3, characters=(2, 4)), NaiveBayesConfig(3, counting="multinomial")])
def test_the_evidence_sums_to_the_answer(config: Any):
    given = made_up(n_classes=3)
    model = fitted(config, given)
    text = "it's a good film , good !"
    found = model.evidence(text)
    total = torch.from_numpy(found.offsets + (found.values[:, None] * found.weights).sum(0))
    assert torch.allclose(total.log_softmax(0), answers(model, [text])[0], atol=1e-6)
    above = found.base + found.parts.sum(0)
    assert np.allclose(above, (total - total.mean()).numpy(), atol=1e-6)
    ((most, least),) = model.heaviest([0], 5)
    assert most[0][1] >= most[-1][1] > least[-1][1] >= least[0][1]


@pytest.mark.parametrize("config", [LinearConfig(3), NaiveBayesConfig(3), LinearConfig(2), NaiveBayesConfig(2)])
def test_the_heaviest_n_grams_are_those_of_all_weights(config: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gram_classifier, "AT_ONCE", 12)  # in several blocks
    model = fitted(config, made_up(n_classes=config.n_classes))
    weights = model.weights_of(np.arange(model.n_grams))
    beyond = weights - weights.mean(1, keepdims=True)
    for number, (most, least) in zip((1, 0), model.heaviest((1, 0), 4), strict=True):
        ordered = np.sort(beyond[:, number])
        assert [weight for _, weight in most] == pytest.approx(ordered[::-1][:4].tolist())
        assert [weight for _, weight in least] == pytest.approx(ordered[:4].tolist())
        named = {model.name_of(column): beyond[column, number] for column in range(model.n_grams)}
        assert all(named[name] == pytest.approx(weight) for name, weight in most + least)


def test_of_very_many_classes_the_weights_of_a_few_take_little():
    n = 20_000
    model = fitted(NaiveBayesConfig(n, order=1), Given([f"word{i % 50} w{i}" for i in range(n)], np.arange(n)))
    tracemalloc.start()
    found = model.heaviest(range(20), 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[7][0][0][0] == "w7"
    assert peak < 20 * 20 * 8 * n  # all weights are 3 GB
