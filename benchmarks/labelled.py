"""Accuracy and seconds of models of labelled text by default, fitted ones and networks, beside scikit-learn.

    python benchmarks/labelled.py DATA_FOLDER [--folds 10] [--seeds 3] [--ensemble 3] [--budget 2m] [--jobs 1]
                                  [--device cpu] [--out labelled.jsonl] [--only sst2,trec,movie_reviews] [--models ...]

DATA_FOLDER and the parts that are judged are those of labelled_foot.py: the validation part of SST-2, folds of ten of
the others. No model sees a judged part before it is judged: `linear` finds its strength by cross-validation within the
rest, and a network holds a tenth of the rest out, by its own rule, for its best weights and the share of its halves;
when these are chosen the linear half learns that tenth too.
A network is `regard train` with its defaults and a budget, at the seeds 0 .. on every part; its seconds are all of
that, reading and judging included. Each job is a process of one thread; every result is a line of --out as soon as it
is there, and what stands in that file already is not measured again. The table at the end is of all of its lines.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from labelled_foot import Split, logistic, own, peer, splits, union, words
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import regard
from regard.core.data_spec import DataSpec
from regard.models.linear import linear
from regard.models.naive_bayes import NaiveBayesConfig

FITTED: dict[str, Callable[[int], Callable[[Split], tuple[float, float]]]] = {
    "majority": lambda _: peer(lambda: make_pipeline(CountVectorizer(), DummyClassifier())),
    "naive_bayes": lambda n: own(NaiveBayesConfig(n)),
    "scikit-learn MultinomialNB, words 1-2": lambda _: peer(
        lambda: make_pipeline(words(CountVectorizer, binary=True), MultinomialNB())
    ),
    "linear": lambda n: own(linear(DataSpec(n_classes=n))),
    "scikit-learn logistic, words 1-2 chars 2-5": lambda _: peer(lambda: make_pipeline(union(), logistic())),
}
CLASSIFIER, ENSEMBLE = "classifier", "classifier, ensemble of {}"


class Job(NamedTuple):
    """One fit or training: a model on a part of a data set."""

    data: str
    model: str
    part: int
    seed: int = 0


class Options(NamedTuple):
    """What all jobs share."""

    folder: Path
    folds: int
    ensemble: int
    budget: str
    device: str


def measure(job: Job, options: Options) -> dict[str, Any]:
    """One result, as a line of the file."""
    torch.set_num_threads(1)
    split = list(splits(options.folder, job.data, options.folds))[job.part]
    if job.model in FITTED:
        accuracy, seconds = FITTED[job.model](int(split[1].max()) + 1)(split)
        return job._asdict() | {"accuracy": accuracy, "seconds": seconds}
    return job._asdict() | network(split, job, options)


def network(split: Split, job: Job, options: Options) -> dict[str, Any]:
    """A training by default, judged on texts that it never met."""
    texts, labels, asked, expected = split
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("train.tsv", "judged.tsv")]
        for path, rows in zip(paths, ((texts, labels), (asked, expected)), strict=True):
            path.write_text("".join(f"c{label}\t{text}\n" for text, label in zip(*rows, strict=True)), encoding="utf-8")
        more: dict[str, Any] = {} if job.model == CLASSIFIER else {"ensemble": options.ensemble}
        start = time.perf_counter()
        run: Any = regard.train(
            None, str(paths[0]), task="labelled", budget=options.budget, seed=job.seed, out=f"{folder}/run",
            device=options.device, threads=1, quiet=True, **more,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        accuracy = run.evaluate(str(paths[1])).to_dict()["accuracy"]
        whole = Path(folder) / "run" / "metrics.jsonl"
        files = [file for file in whole.parent.rglob("metrics.jsonl") if file != whole] or [whole]  # members of one
        steps = [
            max((int(json.loads(line).get("step", 0)) for line in file.read_text().splitlines()), default=0)
            for file in files
        ]
        members = [part for part in run.model.modules() if hasattr(part, "share")]
        told = {"steps": steps, "shares": [float(part.share) for part in members]}
        return {"accuracy": accuracy, "seconds": seconds} | told


def jobs(options: Options, names: list[str], models: list[str], seeds: int) -> Iterator[Job]:
    """The dear ones first, so that none is left alone at the end."""
    for model in reversed(models):
        for name in names:
            n_parts = 1 if name == "sst2" else options.folds
            for part in range(n_parts):
                yield from (Job(name, model, part, seed) for seed in range(seeds if model == CLASSIFIER else 1))


def table(lines: list[dict[str, Any]], names: list[str], models: list[str]) -> str:
    """Accuracy over parts, after ± the deviation of parts, or of seeds where there is one part."""
    rows = ["| data | model | accuracy | parts x seeds | seconds | |", "| --- " * 6 + "|"]
    for name in names:
        for model in models:
            here = [line for line in lines if (line["data"], line["model"]) == (name, model)]
            if not here:
                continue
            parts, seeds = (sorted({line[key] for line in here}) for key in ("part", "seed"))
            key = "part" if len(parts) > 1 else "seed"
            means = [np.mean([x["accuracy"] for x in here if x[key] == one]) for one in sorted({x[key] for x in here})]
            spread = f" ± {100 * np.std(means, ddof=1):.1f}" if len(means) > 1 else ""
            steps = np.mean([step for line in here for step in line.get("steps", [])] or [0])
            share = np.mean([one for line in here for one in line.get("shares", [])] or [0])
            more = f"{steps:.0f} steps, share {share:.2f}" if steps else ""
            accuracy, seconds = 100 * np.mean([x["accuracy"] for x in here]), np.mean([x["seconds"] for x in here])
            cells = (name, model, f"{accuracy:.1f}{spread}", f"{len(parts)} x {len(seeds)}", f"{seconds:.1f}", more)
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ensemble", type=int, default=3)
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("labelled.jsonl"))
    parser.add_argument("--only", default="sst2,trec,movie_reviews")
    parser.add_argument("--models", default="", help="some of them, between semicolons; else all")
    said = parser.parse_args()
    options = Options(said.folder, said.folds, said.ensemble, said.budget, said.device)
    every = [*FITTED, CLASSIFIER, ENSEMBLE.format(said.ensemble)]
    models, names = [one.strip() for one in said.models.split(";") if one.strip()] or every, said.only.split(",")
    if unknown := [one for one in models if one not in every]:
        parser.error(f"--models: {unknown[0]!r} is none of {'; '.join(every)}")
    lines = [json.loads(line) for line in said.out.read_text().splitlines()] if said.out.exists() else []
    done = {tuple(line[key] for key in Job._fields) for line in lines}
    left = [job for job in jobs(options, names, models, said.seeds) if tuple(job) not in done]
    with (
        ProcessPoolExecutor(said.jobs, mp_context=get_context("spawn")) as pool,
        said.out.open("a", encoding="utf-8") as file,
    ):
        waiting = [pool.submit(measure, job, options) for job in left]
        for number, result in enumerate(as_completed(waiting), 1):
            lines.append(result.result())
            file.write(json.dumps(lines[-1]) + "\n")
            file.flush()
            print(f"{number} of {len(left)}: {json.dumps(lines[-1])}", flush=True)
    print(table(lines, names, models))


if __name__ == "__main__":
    main()
