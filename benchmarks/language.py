"""Train every model on one text under one budget and print the table.

    python benchmarks/language.py shakespeare PATH/input.txt.gz --budget 130s
    python benchmarks/language.py wikitext2 PATH/train.txt.gz --valid PATH/valid.txt.gz --budget 9m --models lstm

The table goes to benchmarks/results/ as Markdown with the settings beside every number.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import regard
from regard.errors import RegardError

RESULTS = Path(__file__).parent / "results"
MODELS = ["dan", "fnn", "rnn", "gru", "lstm", "gpt", "backpack", "s4d", "mamba", "mamba2"]
DATA: dict[str, dict[str, Any]] = {
    "shakespeare": {"tokens": "chars", "valid": "tail:0.1"},
    "wikitext2": {"tokens": "words", "documents": "file"},
}
# What suits a text on a GPU, beside each preset's own settings. On two cores the presets are taken as they are.
STATE_SPACE = {"optimiser": "muon", "lr": 1e-3, "dropout": 0.3}
TRANSFORMER = {"optimiser": "muon", "lr": 1e-3, "dropout": 0.3}
RECURRENT = {"lr": 3e-3, "d_model": 650, "dropout": 0.6, "norm": "none", "residual": False, "min_lr": 0.01}
GPU: dict[str, dict[str, dict[str, Any]]] = {
    "shakespeare": {
        "all": {"size": "base", "precision": "bfloat16", "batch_size": 64, "length": 256},
        "gpt": TRANSFORMER,
        "backpack": TRANSFORMER,
        "lstm": {"lr": 2e-3, "d_model": 768},
        "gru": {"lr": 2e-3, "d_model": 768},
        "s4d": STATE_SPACE,
        "mamba": STATE_SPACE,
        "mamba2": STATE_SPACE,
    },
    "wikitext2": {
        "all": {"size": "base", "precision": "bfloat16", "batch_size": 64, "length": 64},
        "gpt": {**TRANSFORMER, "tied": True, "length": 128, "batch_size": 32},
        "lstm": RECURRENT,
        "gru": RECURRENT,
        "mamba2": {**STATE_SPACE, "length": 128, "batch_size": 32},
    },
}


def main() -> None:
    arguments = parse()
    for name in arguments.models.split(","):
        row = measure(name, arguments)
        print(json.dumps(row), flush=True)
        add(row, Path(arguments.results) / f"{arguments.data}-{arguments.device}.jsonl", arguments)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=DATA)
    parser.add_argument("path")
    parser.add_argument("--valid", help="another file to validate on")
    parser.add_argument("--budget", default="130s")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", default="small")
    parser.add_argument("--set", action="append", default=[], help="key=value for every model")
    parser.add_argument("--results", default=str(RESULTS), help="folder of the tables")
    return parser.parse_args()


def measure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One model trained and evaluated on the whole held-out part, as a row."""
    suited = GPU[arguments.data] if arguments.device == "cuda" else {}
    settings = {**DATA[arguments.data], **suited.get("all", {}), **suited.get(name, {})}
    settings |= {key: number(value) for key, value in (pair.split("=", 1) for pair in arguments.set)}
    if arguments.valid:
        settings["valid"] = arguments.valid
    size = settings.pop("size", arguments.size)
    start = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = regard.train(
                name,
                arguments.path,
                budget=arguments.budget,
                size=size,
                out=Path(folder) / "run",
                device=arguments.device,
                quiet=True,
                **settings,
            )
            spent = time.perf_counter() - start
            report = run.evaluate()
            last = run.config["train"]
    except RegardError as error:
        return {"model": name, "failed": str(error)}
    parameters = sum(p.numel() for p in run.model.parameters())
    return {
        "model": name,
        "size": size,
        "parameters": parameters,
        "loss": round(report.scores["loss"], 4),
        "perplexity": round(report.scores["perplexity"], 2),
        "dropout": settings.get("dropout", ""),
        "lr": last["lr"],
        "batch": last["batch_size"],
        "length": last["length"],
        "optimiser": last["optimiser"],
        "seconds": round(spent, 1),
    }


def number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def add(row: dict[str, Any], path: Path, arguments: argparse.Namespace) -> None:
    """Keep the row beside those of earlier calls, and write the table anew, best first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row |= {"budget": arguments.budget}
    old = [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []
    rows = [other for other in old if other["model"] != row["model"]] + [row]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows.sort(key=lambda row: row.get("loss", float("inf")))
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = [
        f"# {arguments.data} on {arguments.device}",
        "",
        f"Loss in nats a token over the whole held-out part. Python {platform.python_version()}, one seed.",
        "",
        "| " + " | ".join(keys) + " |",
        "|" + " --- |" * len(keys),
        *("| " + " | ".join(str(row.get(key, "")) for key in keys) + " |" for row in rows),
    ]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
