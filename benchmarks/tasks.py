"""Real results of the tasks: one run, one JSON line; `table` turns lines into a table.

    python benchmarks/tasks.py multi30k --data DIR --model transformer --budget 9m --device cuda train.lr=2e-3
    python benchmarks/tasks.py table results.jsonl

DIR holds the data sets by name (multi30k, sst, trec, movie_reviews, ud_english_ewt, wnut17, wikitext2, emoji_captions,
epf), as they are published. Validation parts only; TREC and the movie reviews have none and are cut into ten folds
(`--fold`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from markets import KNOWN

import regard
from regard.run.settings import parse_value

BEAMS: dict[str, dict[str, Any]] = {
    "beam 5": {"beam": 5, "length_penalty": "gnmt", "alpha": 0.6},
    "beam 5, alpha 1": {"beam": 5, "length_penalty": "gnmt", "alpha": 1.0},
}
FOLDS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*DATA, "table"])
    parser.add_argument("file", nargs="?", help="of `table`: the lines")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--model")
    parser.add_argument("--size", default="small")
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--market", default="NP")
    parser.add_argument("--beam", action="store_true", help="also with a beam")
    parser.add_argument("--label", help="what the line is called")
    parser.add_argument("--keep", type=Path, help="where the run is left, for together.py")
    arguments, settings = parser.parse_known_args()
    if arguments.name == "table":
        print(table(Path(arguments.file)))
        return
    print(json.dumps(measured(arguments, settings)), flush=True)


def measured(arguments: argparse.Namespace, settings: list[str]) -> dict[str, Any]:
    """One training run and its scores on the validation part."""
    pairs = (word.partition("=") for word in settings)
    chosen = {key.partition(".")[2]: parse_value(value) for key, _, value in pairs}
    folder = Path(tempfile.mkdtemp())
    path, given = DATA[arguments.name](Path(arguments.data), folder, arguments)
    start = time.monotonic()
    run: Any = regard.train(
        arguments.model,
        path,
        budget=arguments.budget,
        size=arguments.size,
        out=folder / "run",
        quiet=True,
        seed=arguments.seed,
        device=arguments.device,
        **(given | chosen),
    )
    seconds = time.monotonic() - start
    scores = {"": run.evaluate().to_dict()}
    if arguments.beam:
        scores |= {name: run.evaluate(**options).to_dict() for name, options in BEAMS.items()}
    kept = folder / "run" / "metrics.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    steps = max((line.get("step", 0) for line in lines), default=0)  # none of a model that is fitted at once
    if arguments.keep:
        shutil.move(folder / "run", arguments.keep)
    shutil.rmtree(folder)
    return {
        "data": arguments.name,
        "label": arguments.label or " ".join(settings),
        "model": arguments.model or run.config["model"]["name"],
        "size": arguments.size,
        "seed": arguments.seed,
        "fold": arguments.fold,
        "market": arguments.market,
        "commit": commit(),
        "budget": arguments.budget,
        "seconds": round(seconds, 1),
        "steps": steps,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "scores": scores,
    }


def multi30k(data: Path, _folder: Path, _arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    place = data / "multi30k"
    valid = f"{place / 'val.en.gz'},{place / 'val.de.gz'}"
    return str(place / "train.en.gz"), {"target": str(place / "train.de.gz"), "valid": valid}


def sst2(data: Path, _folder: Path, _arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    return str(data / "sst/sst2.train.tsv.gz"), {"valid": str(data / "sst/sst2.dev.tsv.gz")}


def trec(data: Path, folder: Path, arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Coarse classes."""
    return folded(data / "trec/train.tsv.gz", folder, arguments.fold)


def movie_reviews(data: Path, folder: Path, arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    return folded(data / "movie_reviews/train.tsv.gz", folder, arguments.fold)


def folded(path: Path, folder: Path, fold: int) -> tuple[str, dict[str, Any]]:
    """The first and the last of three columns; every tenth row, from `fold` on, is held out."""
    rows = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    parts: dict[str, list[str]] = {"train": [], "valid": []}
    for number, (label, _, text) in enumerate(rows):
        parts["valid" if number % FOLDS == fold else "train"].append(f"{label}\t{text}\n")
    for name, written in parts.items():
        (folder / f"{name}.tsv").write_text("".join(written), encoding="utf-8")
    return str(folder / "train.tsv"), {"valid": str(folder / "valid.tsv"), "task": "labelled"}


def ewt(data: Path, _folder: Path, _arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    place = data / "ud_english_ewt"
    return str(place / "en_ewt-ud-train.conllu.gz"), {"valid": str(place / "en_ewt-ud-dev.conllu.gz")}


def wnut17(data: Path, _folder: Path, _arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    return str(data / "wnut17/train.conll.gz"), {"valid": str(data / "wnut17/dev.conll.gz")}


def wikitext2(data: Path, _folder: Path, _arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    place = data / "wikitext2"
    return str(place / "train.txt.gz"), {
        "valid": str(place / "valid.txt.gz"),
        "tokens": "words",
        "documents": "file",
    }


def emoji(data: Path, _folder: Path, _arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    place = data / "emoji_captions"
    return str(place / "train.images.npz"), {"valid": str(place / "valid.images.npz")}


def epf(data: Path, _folder: Path, arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    return str(data / f"epf/{arguments.market}.train.csv.gz"), {"valid": "tail:294d", "known": KNOWN[arguments.market]}


DATA = {
    "multi30k": multi30k,
    "sst2": sst2,
    "trec": trec,
    "movie_reviews": movie_reviews,
    "ewt": ewt,
    "wnut17": wnut17,
    "wikitext2": wikitext2,
    "emoji": emoji,
    "epf": epf,
}


def table(path: Path) -> str:
    """The lines as a table in Markdown, a row for each way of decoding."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        for way, scores in one["scores"].items():
            numbers = ", ".join(f"{name} {value:.4g}" for name, value in scores.items() if isinstance(value, float))
            told = [one["data"], one["model"], one["label"], one["seed"], one["steps"], one["seconds"], way, numbers]
            rows.append("| " + " | ".join(map(str, told)) + " |")
    head = "| data | model | settings | seed | steps | seconds | decoding | validation |"
    return "\n".join([head, "|" + " --- |" * 8, *rows])


def commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
