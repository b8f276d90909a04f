"""Train every model on one text under one budget and print the table.

    python benchmarks/language.py shakespeare PATH/input.txt.gz --budget 130s
    python benchmarks/language.py wikitext2 PATH/train.txt.gz --valid PATH/valid.txt.gz --budget 9m --models lstm

The table goes to benchmarks/results/ as Markdown with the settings beside every number.
"""

from __future__ import annotations

import argparse
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
# What suits a device. Everything else is the preset's own.
SETTINGS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("shakespeare", "cpu"): {},
    ("shakespeare", "cuda"): {},
    ("wikitext2", "cuda"): {},
}


def main() -> None:
    arguments = parse()
    device = arguments.device
    rows = []
    for name in arguments.models.split(","):
        rows.append(measure(name, arguments, device))
        print(rows[-1], flush=True)
        write(arguments, device, rows)


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
    parser.add_argument("--label", help="name of the results file")
    return parser.parse_args()


def measure(name: str, arguments: argparse.Namespace, device: str) -> dict[str, Any]:
    """One model trained and evaluated on the whole held-out part, as a row."""
    settings = {**DATA[arguments.data], **SETTINGS.get((arguments.data, device), {}).get(name, {})}
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
                device=device,
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
        "loss": round(report.loss, 4),
        "perplexity": round(report.perplexity, 2),
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


def write(arguments: argparse.Namespace, device: str, rows: list[dict[str, Any]]) -> None:
    """The table so far, best first."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{arguments.label or f'{arguments.data}-{device}'}.md"
    done = sorted((row for row in rows if "loss" in row), key=lambda row: row["loss"])
    keys = ["model", "size", "parameters", "loss", "perplexity", "lr", "batch", "length", "optimiser", "seconds"]
    lines = [
        f"# {arguments.data}, {arguments.budget} a model on {device}",
        "",
        f"Loss in nats a token over the whole held-out part. {platform.machine()}, Python {platform.python_version()}.",
        "",
        "| " + " | ".join(keys) + " |",
        "|" + " --- |" * len(keys),
    ]
    lines += ["| " + " | ".join(str(row.get(key, "")) for key in keys) + " |" for row in done]
    lines += [f"| {row['model']} | failed: {row['failed']} |" for row in rows if "failed" in row]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
