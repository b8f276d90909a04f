"""Accuracy and seconds of models of labelled text by default, fitted ones and the network, beside scikit-learn.

    python benchmarks/labelled.py DATA_FOLDER [--folds 10] [--seeds 3] [--budget 2m] [--only sst2,trec,movie_reviews]

DATA_FOLDER and the parts that are judged are those of labelled_foot.py: the validation part of SST-2, folds of ten of
the others. The network is `regard train` with its defaults and a budget, on one thread; on SST-2 at several seeds, on a
fold at the seed of its number. Its seconds are all that `train` takes, reading and judging included.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from labelled_foot import Split, logistic, own, peer, splits, union, words
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import regard
from regard.models.linear import LinearConfig
from regard.models.naive_bayes import NaiveBayesConfig

Measured = tuple[float, float]


def network(split: Split, seed: int, budget: str) -> tuple[float, float, int, float]:
    """Accuracy, seconds, steps and the share of the half that is solved for, of a training by default."""
    texts, labels, asked, expected = split
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("train.tsv", "valid.tsv")]
        for path, rows in zip(paths, ((texts, labels), (asked, expected)), strict=True):
            path.write_text("".join(f"c{label}\t{text}\n" for text, label in zip(*rows, strict=True)), encoding="utf-8")
        start = time.perf_counter()
        run: Any = regard.train(
            None, str(paths[0]), valid=str(paths[1]), task="labelled", budget=budget, seed=seed, out=f"{folder}/run",
            device="cpu", threads=1, quiet=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
        steps = max(int(line["step"]) for line in map(json.loads, lines))
        return run.evaluate().to_dict()["accuracy"], seconds, steps, float(run.model.head.share)


def fitted(n_classes: int) -> dict[str, Callable[[Split], Measured]]:
    """Everything that is fitted at once, ours and scikit-learn's."""
    return {
        "majority": peer(lambda: make_pipeline(CountVectorizer(), DummyClassifier())),
        "naive_bayes": own(NaiveBayesConfig(n_classes)),
        "scikit-learn MultinomialNB, words 1-2": peer(
            lambda: make_pipeline(words(CountVectorizer, binary=True), MultinomialNB())
        ),
        "linear": own(LinearConfig(n_classes, characters=(2, 5))),
        "scikit-learn logistic, words 1-2 chars 2-5": peer(lambda: make_pipeline(union(), logistic())),
    }


def told(accuracies: list[float]) -> str:
    spread = f" ± {100 * np.std(accuracies, ddof=1):.1f}" if len(accuracies) > 1 else ""
    return f"{100 * np.mean(accuracies):.1f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--only", default="sst2,trec,movie_reviews")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | model | accuracy | trainings | seconds | |\n" + "| --- " * 6 + "|")
    for name in options.only.split(","):
        parts = list(splits(options.folder, name, options.folds))
        for model, measure in fitted(int(parts[0][1].max()) + 1).items():
            found = [measure(split) for split in parts]
            seconds = np.mean([one[1] for one in found])
            print(
                f"| {name} | {model} | {told([one[0] for one in found])} | {len(parts)} | {seconds:.1f} | |", flush=True
            )
        whole = (
            [(parts[0], seed) for seed in range(options.seeds)]
            if len(parts) == 1
            else list(zip(parts, range(len(parts)), strict=True))
        )
        nets = [network(split, seed, options.budget) for split, seed in whole]
        seconds, steps, share = np.mean([one[1:] for one in nets], axis=0)
        row = f"{told([one[0] for one in nets])} | {len(nets)} | {seconds:.0f} | {steps:.0f} steps, share {share:.2f}"
        print(f"| {name} | classifier, by default | {row} |", flush=True)


if __name__ == "__main__":
    main()
