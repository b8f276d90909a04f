"""Is the learning rate of every preset the right one at a size? Its default beside a grid around it, in equal steps.

    python benchmarks/rates.py --data DIR --size small --steps 150 --out rates.jsonl
    python benchmarks/rates.py --data DIR --size base --device cuda --steps 2000 --out rates-base.jsonl
    python benchmarks/rates.py table rates.jsonl

DIR holds tinyshakespeare/input.txt.gz, which language models read by its characters; the others are trained on the
world of their task or, with --real, on the data set of it that DIR holds (multi30k, sst, ud_english_ewt, epf). Each
training is one line of the file with all that it was made with; one that is there already is not made again, so that
what was cut off goes on with the same command. The table is printed at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks import DATA

import regard
from regard.core.registry import entry, names
from regard.errors import NumericError
from regard.run.rate import rates_by_size
from regard.tasks import task_named

GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
WITHIN = 0.02
TEXT = {"tokens": "chars", "valid": "tail:0.02"}
WORLDS = {"world:stories": "world:stories?train=2000&valid=100"}
REAL = {"pairs": "multi30k", "labelled": "sst2", "tagged": "ewt", "series": "epf"}  # by task


def main() -> None:
    given = parse()
    if given.file is not None:
        print(table(read(Path(given.file))))
        return
    models = given.models.split(",") if given.models else neural()
    for model in models:
        losses: dict[float, float] = {}
        while (factor := following(losses, given.whole)) is not None:
            found = [made(asked(model, factor, seed, given), given) for seed in range(given.seeds)]
            losses[factor] = mean(found) or math.inf
    print(table([line for line in read(given.out) if line["model"] in models and line["size"] == given.size]))


def following(losses: dict[float, float], whole: bool) -> float | None:
    """The next multiple of the default to try; None when enough are known.

    The default and its neighbours first, then outward as long as the outermost is the best so far, which takes three
    trainings of a model whose rate is right instead of five. whole: all of them whatever comes out.
    """
    for factor in (1.0, 0.5, 2.0):
        if factor not in losses:
            return factor
    best = min(losses, key=losses.__getitem__)
    outer = [f for f in GRID if f not in losses and (whole or f in (2 * best, best / 2))]
    return outer[0] if outer else None


def made(line: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """The line of a training, made now or found in the file."""
    known = [other for other in read(given.out) if is_same(line, other)]
    if known:
        return known[0]
    line |= measured(line, given)
    with open(given.out, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return line


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", choices=["table"])
    parser.add_argument("file", nargs="?", help="of `table`: the lines")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--models", help="names with commas between; all that learn by steps without")
    parser.add_argument("--size", default="small")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="every rate of the grid, also beyond one that is worse")
    parser.add_argument("--real", action="store_true", help="the data set of a task instead of its world, where known")
    parser.add_argument("--length", type=int, help="tokens of a row; the package's own without")
    parser.add_argument("--batch-size", type=int, help="rows of a step; the model's own without")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("rates.jsonl"))
    return parser.parse_args()


def neural() -> list[str]:
    """Every model that learns by steps, in the order of the road."""
    return [name for name in names() if not entry(name).fitted]


def asked(model: str, factor: float, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """What a training is known by. The rate is that of the preset now: another default is another line."""
    default = default_rate(model, given.size)
    line = {"model": model, "size": given.size, "default": default, "factor": factor, "rate": default * factor}
    line |= {"seed": seed, "steps": given.steps, "length": given.length, "batch_size": given.batch_size}
    return line | {"device": given.device} | ({"real": True} if given.real else {})


def default_rate(model: str, size: str) -> float:
    """What `regard train` takes at this size."""
    rate = rates_by_size(entry(model))[size]
    assert rate is not None
    return rate


def is_same(line: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two lines are of one training: a rate that another default had in its grid counts, too."""
    keys = line.keys() - {"rate", "default", "factor"}
    return all(line[key] == other.get(key) for key in keys) and close(line["rate"], other["rate"])


def close(rate: float, other: float) -> bool:
    return math.isclose(rate, other, rel_tol=0.01)


def measured(line: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """The held-out loss at the end of the training; none where it diverged."""
    settings = {key: line[key] for key in ("length", "batch_size") if line[key] is not None}
    path, more = data_of(line["model"], given)
    start, loss = time.monotonic(), None
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = regard.train(
                line["model"],
                path,
                size=line["size"],
                budget=f"{line['steps']}steps",
                out=Path(folder) / "run",
                quiet=True,
                lr=line["rate"],
                seed=line["seed"],
                device=line["device"],
                threads=given.threads,
                evaluate_every=line["steps"],
                choose_by="loss",
                sample_every=0,
                **settings | more,
            )
            lines = map(json.loads, (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines())
            loss = [one["valid_loss"] for one in lines if "valid_loss" in one][-1]
            line |= {"optimiser": run.config["train"]["optimiser"]}
        except NumericError as error:
            print(f"{line['model']} at {line['rate']:g}: {error}", flush=True)
    return {"loss": loss, "seconds": round(time.monotonic() - start, 1)}


def data_of(model: str, given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Characters of Shakespeare for what continues a text, else a data set or the world of its task."""
    task = task_named(entry(model).task)
    if task.takes_anything:
        return str(given.data / "tinyshakespeare/input.txt.gz"), TEXT
    if given.real and task.name in REAL:
        return DATA[REAL[task.name]](given.data, given.data, argparse.Namespace(market="NP"))
    assert task.world is not None
    return WORLDS.get(task.world, task.world), {"task": task.name}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def table(lines: Sequence[dict[str, Any]]) -> str:
    """A row for each model: the loss at every rate of the grid around its default now, and how far that is off."""
    head = ["model", "size", "steps", "default", *(f"x{factor:g}" for factor in GRID), "default over best"]
    rows, off = [], []
    for model, size, steps in dict.fromkeys(map(_place, lines)):
        own = default_rate(model, size)
        alike = [line for line in lines if _place(line) == (model, size, steps)]
        found = {factor: mean([one for one in alike if close(one["rate"], own * factor)]) for factor in GRID}
        losses = [loss for loss in found.values() if loss is not None]
        default = found[1.0]
        over = math.inf if default is None else default / min(losses) - 1
        off += [model] if over > WITHIN else []
        cells = ["" if loss is None else f"{loss:.4f}" for loss in found.values()]
        told = f"{over:+.1%}" if math.isfinite(over) else "diverged or not tried"
        rows.append([model, size, str(steps), f"{own:g}", *cells, told])
    body = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    verdict = f"{len(rows) - len(off)} of {len(rows)} within {WITHIN:.0%} of the best of the grid"
    return "\n".join([*body, "", verdict + (f"; not {', '.join(off)}" if off else "")])


def _place(line: dict[str, Any]) -> tuple[str, str, int]:
    return line["model"], line["size"], line["steps"]


def mean(lines: Sequence[dict[str, Any]]) -> float | None:
    losses = [line["loss"] for line in lines]
    return None if not losses or None in losses else sum(losses) / len(losses)


if __name__ == "__main__":
    main()
