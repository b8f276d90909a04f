"""Accuracy and fit seconds of the fitted models of labelled text, beside scikit-learn with like features and losses.

    python benchmarks/labelled_foot.py DATA_FOLDER [--folds 10] [--only sst2,trec,movie_reviews]

DATA_FOLDER holds sst/, trec/ and movie_reviews/. SST-2 is judged on its validation part; the others have none and are
judged by cross-validation, every tenth text a fold. A fit is all that happens from texts to weights. One thread.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC

from regard.core.config import Config
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Nobody
from regard.core.model import logits_of
from regard.fitting.grams import WORD
from regard.models.linear import LinearConfig, linear
from regard.models.naive_bayes import NaiveBayesConfig

Split = tuple[list[str], np.ndarray, list[str], np.ndarray]


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


def own(config: Config) -> Callable[[Split], tuple[float, float]]:
    """Accuracy and seconds of one of ours."""

    def measure(split: Split) -> tuple[float, float]:
        texts, labels, asked, expected = split
        model = config.build()
        start = time.perf_counter()
        model.fit(Given(texts, labels), FitSettings(), Nobody())
        seconds = time.perf_counter() - start
        told = [int(logits_of(model, _codes(text)).argmax()) for text in asked]
        return float((np.array(told) == expected).mean()), seconds

    return measure


def _codes(text: str) -> torch.Tensor:
    return torch.tensor([[ord(character) for character in text]], dtype=torch.int64).view(1, -1)


def peer(make: Callable[[], Any]) -> Callable[[Split], tuple[float, float]]:
    """The same of one of scikit-learn."""

    def measure(split: Split) -> tuple[float, float]:
        texts, labels, asked, expected = split
        pipeline = make()
        start = time.perf_counter()
        pipeline.fit(texts, labels)
        seconds = time.perf_counter() - start
        return float((pipeline.predict(asked) == expected).mean()), seconds

    return measure


def words(kind: Any, **more: Any) -> Any:
    return kind(ngram_range=(1, 2), token_pattern=WORD.pattern, **more)


def union() -> Any:
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    return make_union(words(TfidfVectorizer, sublinear_tf=True), letters)


def logistic() -> Any:
    return LogisticRegression(C=10, max_iter=1000)


def rows_of(n_classes: int) -> dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]]:
    """Name to ours and its peer."""
    both = {"order": 2, "characters": (2, 5)}
    return {
        "naive_bayes, word 1-2": (
            own(NaiveBayesConfig(n_classes)),
            peer(lambda: make_pipeline(words(CountVectorizer, binary=True), MultinomialNB())),
        ),
        "linear tfidf, word 1-2, logistic": (
            own(LinearConfig(n_classes, weights="tfidf")),
            peer(lambda: make_pipeline(words(TfidfVectorizer, sublinear_tf=True), logistic())),
        ),
        "linear tfidf, word 1-2 char 2-5, logistic": (
            own(LinearConfig(n_classes, weights="tfidf", **both)),
            peer(lambda: make_pipeline(union(), logistic())),
        ),
        "linear tfidf, word 1-2 char 2-5, hinge": (
            own(LinearConfig(n_classes, weights="tfidf", loss="hinge", strength=1.0, **both)),
            peer(lambda: make_pipeline(union(), LinearSVC(C=1))),
        ),
        "linear (default)": (own(linear(DataSpec(n_classes=n_classes))), None),
    }


def read(path: Path) -> tuple[list[str], list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        cells = [line.rstrip("\n").split("\t") for line in file]
    return [row[-1] for row in cells], [row[0] for row in cells]


def splits(folder: Path, name: str, folds: int) -> Iterator[Split]:
    if name == "sst2":
        parts = [read(folder / "sst" / f"sst2.{part}.tsv.gz") for part in ("train", "dev")]
        (texts, labels), (asked, expected) = parts
        numbers = _numbered(labels + expected)
        yield texts, numbers[: len(labels)], asked, numbers[len(labels) :]
        return
    texts, labels = read(folder / name / "train.tsv.gz")
    numbers, place = _numbered(labels), np.arange(len(texts))
    for fold in range(folds):
        out = place % 10 == fold
        yield [texts[i] for i in place[~out]], numbers[~out], [texts[i] for i in place[out]], numbers[out]


def _numbered(labels: Sequence[str]) -> np.ndarray:
    names = sorted(set(labels))
    return np.array([names.index(label) for label in labels])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--only", default="sst2,trec,movie_reviews")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | model | accuracy | fit s | scikit-learn | fit s | times |")
    print("| --- " * 7 + "|")
    for name in options.only.split(","):
        parts = list(splits(options.folder, name, options.folds))
        for model, (ours, theirs) in rows_of(int(parts[0][1].max()) + 1).items():
            found = np.mean([ours(split) for split in parts], axis=0)
            other = np.mean([theirs(split) for split in parts], axis=0) if theirs else None
            told = (
                ["", "", ""] if other is None else [f"{other[0]:.4f}", f"{other[1]:.2f}", f"{found[1] / other[1]:.2f}"]
            )
            print(f"| {name} | {model} | {found[0]:.4f} | {found[1]:.2f} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
