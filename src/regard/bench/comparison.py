"""What `regard compare` costs beyond the trainings it makes: time, and memory that one model leaves to the next."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from regard.bench.memory import peak_of
from regard.bench.race import Row, Work, ratio_of
from regard.errors import ResourceError
from regard.run.settings import Origin
from regard.run.train import plan, train_run
from regard.storage.temporary import temporary_folder
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.ledger import STATE
from regard.studies.protocol import TEST_SHARE
from regard.training.display import Silent

WORLD = "world:stories?train=1000&valid=100&seed=0"
MODEL, STEPS = "lstm?d_model=96", 240
SETTINGS: dict[str, Any] = {"train.batch_size": 8, "train.sample_every": 0, "train.threads": 1}
# The largest is in the middle: what it leaves behind would be seen in the last one's peak.
LADDER = ("rnn?d_model=32", "lstm?d_model=1024", "gpt?d_model=32")


def comparison(repeats: int) -> list[Row]:
    """The seconds of trainings made by compare and by train in turn; the peak of three models beside the largest."""
    with temporary_folder(None, "regard-bench-") as folder:
        lengths = [one["step"] for one in _trainings(folder / "out")]
    pairs = [_seconds(number, lengths) for number in range(repeats)]
    ours, peer = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(alone / inside for inside, alone in pairs)
    several = peak_of("a comparison of three", ladder, ",".join(LADDER))
    largest = peak_of("a comparison of the largest", ladder, LADDER[1])
    return [
        Row("trainings of compare beside the same by train", ours, peer, ratio, 0.97, "s"),
        Row(
            "compare, peak memory beside its largest model alone",
            several,
            largest,
            ratio_of(largest, several),
            0.91,
            "MB",
        ),
    ]


def ladder(models: str) -> Work:
    """A short comparison of some models, as a fresh process is asked for it."""

    def work() -> None:
        with temporary_folder(None, "regard-bench-") as folder:
            _compared(models.split(","), "12steps", folder / "out")

    return work


def _seconds(number: int, lengths: list[int]) -> tuple[float, float]:
    """Seconds of the trainings in a comparison, and of the same ones by train, before it or after it in turn."""
    with temporary_folder(None, "regard-bench-") as folder:
        before = _alone(lengths, folder / "before") if number % 2 else 0.0
        outcomes = _trainings(folder / "out")
        if [outcome["step"] for outcome in outcomes] != lengths:
            raise ResourceError(f"compare trained for {[one['step'] for one in outcomes]} steps, not {lengths}")
        return sum(one["seconds"] for one in outcomes), before or _alone(lengths, folder / "after")


def _trainings(out: Path) -> list[dict[str, Any]]:
    """What became of every training of a comparison: those of the rates, and that at the best of them."""
    _compared([MODEL], f"{STEPS}steps", out)
    return [entry["outcome"] for entry in json.loads((out / STATE).read_text(encoding="utf-8")).values()]


def _compared(models: list[str], budget: str, out: Path) -> None:
    compare(models, WORLD, budget=budget, seeds=1, out=out, board=LineBoard(None), **SETTINGS)


def _alone(lengths: list[int], out: Path) -> float:
    """Seconds of trainings of so many steps, on the same data with the same test part set apart."""
    name, _, width = MODEL.partition("?d_model=")
    settings = SETTINGS | {"model.name": name, "model.d_model": int(width), "data.path": WORLD, "data.test": TEST_SHARE}
    total = 0.0
    for number, steps in enumerate(lengths):
        changes = {key: Origin(value, "bench") for key, value in {**settings, "train.budget": f"{steps}steps"}.items()}
        total += train_run(plan(recipe=None, changes=changes, out=out / str(number)), Silent())[1].seconds
    return total
