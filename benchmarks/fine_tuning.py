"""Accuracy on SST-2 of a classifier that starts from a run, beside one from scratch and the linear one.

    regard import FOLDER_OF_MINILM --out runs/minilm
    python benchmarks/fine_tuning.py sst2.train.tsv sst2.dev.tsv runs/minilm [--budget 5m] [--seeds 1]
        [--rates 1e-4,2e-4] [--set model.lora=8] [--only "from minilm"]

Every row is `regard train TRAIN --valid DEV` with nothing else set but what the row names. Told are the best accuracy
on the held-out part, by which the weights are chosen too, the steps, the seconds by the clock and of the processor,
reading, judging and saving among them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import regard


def trained(train: str, dev: str, budget: str, **settings: Any) -> tuple[float, int, float, float]:
    """Accuracy, steps, seconds by the clock, seconds of the processor."""
    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        run: Any = regard.train(
            settings.pop("model", None), train, valid=dev, task="labelled", budget=budget, out=f"{folder}/run",
            device="cpu", quiet=True, **settings,
        )  # fmt: skip
        accuracy = run.evaluate().scores["accuracy"]
        steps = [one["step"] for one in run.metrics] if (Path(folder) / "run" / "metrics.jsonl").exists() else []
        spent = [now - then for now, then in zip(os.times(), before, strict=True)]
        return accuracy, max(steps, default=0), spent[4], spent[0] + spent[1]


def rows(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The settings of each row, by its name."""
    start: dict[str, Any] = {"start": arguments.run}
    start |= dict(pair.removeprefix("model.").removeprefix("train.").split("=", 1) for pair in arguments.set)
    start |= {key: int(value) for key, value in start.items() if key == "lora"}
    start |= {key: float(value) for key, value in start.items() if key in ("layer_decay", "lr")}
    told = ", ".join(arguments.set)
    rates = [float(one) for one in arguments.rates.split(",") if one]
    found: dict[str, dict[str, Any]] = {"linear": {"model": "linear"}, "from scratch": {}}
    found |= {f"from {Path(arguments.run).name}{f', {told}' if told else ''}": start} if not rates else {}
    return found | {f"from {Path(arguments.run).name}, rate {rate:g}": start | {"lr": rate} for rate in rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("dev")
    parser.add_argument("run")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rates", default="")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print("| model | accuracy | steps | seconds | of the processor |\n| --- | ---: | ---: | ---: | ---: |", flush=True)
    for name, settings in rows(arguments).items():
        if not name.startswith(arguments.only):
            continue
        for seed in range(arguments.seeds):
            found = trained(arguments.train, arguments.dev, arguments.budget, seed=seed, **settings)
            print("| {} | {:.4f} | {:,} | {:.0f} | {:.0f} |".format(name, *found), flush=True)


if __name__ == "__main__":
    main()
