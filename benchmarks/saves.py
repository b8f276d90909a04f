"""The share of a training's time in which it waits for its saves: none, written at once, written in the background.

    python benchmarks/saves.py [--settings d_model=512,n_layers=12] [--steps 60] [--every 20] [--rows 8] [--device cpu]

Stalled is the time that the loop spends in saving between its first and its last step, in per cent of all of that time;
the last save, after which no step comes, is left out. A step is the mean of all others, so that what a thread takes
from the steps beside it is seen there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

VOCABULARY, LENGTH = 16384, 128
WAYS: dict[str, dict[str, Any]] = {
    "no saves": {"save_every": 1 << 30},
    "at once": {"save_async": False},
    "in the background": {"save_async": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="gpt")
    parser.add_argument("--settings", default="d_model=512,n_layers=12")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="where the runs are written for the time being")
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for _ in range(options.rounds):
        for name, said in WAYS.items():
            found[name].append(measured(options, said))
    best = {name: min(rounds, key=lambda one: one["seconds"]) for name, rounds in found.items()}
    plain = best["no saves"]
    print(f"{options.model} {options.settings}: {plain['parameters'] / 1e6:.1f}M parameters, a save every", end=" ")
    print(f"{options.every} of {options.steps} steps of {options.rows} rows of {LENGTH} on {options.device}\n")
    print("| saves | s in all | ms a step | stalled, s a save | stalled, % | times as long as without |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, one in best.items():
        each = f"{one['stalled'] / one['saves']:.3f}" if one["saves"] else "-"
        share, times = 100 * one["stalled"] / one["seconds"], one["seconds"] / plain["seconds"]
        print(f"| {name} | {one['seconds']:.1f} | {one['step'] * 1e3:.0f} | {each} | {share:.1f} | {times:.3f} |")


def measured(options: argparse.Namespace, said: dict[str, Any]) -> dict[str, float]:
    """Times of one training."""
    import torch

    from regard.core.registry import build
    from regard.data.batch import Batch
    from regard.training import loop
    from regard.training.problem import TrainingProblem
    from regard.training.settings import TrainSettings

    class Random:
        def batch(self, step: int, batch_size: int) -> Batch:
            ids = torch.randint(VOCABULARY, (batch_size, LENGTH + 1), generator=torch.Generator().manual_seed(step))
            return Batch(ids[:, :-1].clone(), ids[:, 1:].clone(), torch.full((batch_size,), LENGTH), [])

    clock = _Clock(options.device)
    torch.manual_seed(0)
    given = {key: int(value) for key, value in (one.split("=") for one in options.settings.split(","))}
    model = build(options.model, vocab_size=VOCABULARY, **given)
    settings = TrainSettings(
        **{"save_every": options.every, "on_save_error": "stop", **said},
        budget=f"{options.steps}steps",
        batch_size=options.rows,
        length=LENGTH,
        device=options.device,
        compile=False,
    )
    usual: Any = {name: getattr(loop, name) for name in ("save", "conclude", "_step")}
    try:
        for name in ("save", "conclude"):
            setattr(loop, name, clock.stalling(usual[name]))
        loop._step = clock.stepping(usual["_step"])
        with tempfile.TemporaryDirectory(dir=options.out) as folder:
            problem = TrainingProblem(Random(), identity={"hash": "random", "tokenizer": "none"})
            loop.train(model, problem, settings, Path(folder) / "run")
    finally:
        for name, function in usual.items():
            setattr(loop, name, function)
    return clock.told() | {"parameters": sum(one.numel() for one in model.parameters())}


class _Clock:
    """When steps began and ended, and how long saves took between them."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.steps: list[tuple[float, float]] = []
        self.stalls: list[tuple[float, float]] = []
        self.saves: list[float] = []

    def now(self) -> float:
        import torch

        if self.device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter()

    def stepping(self, work: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: Any) -> None:
            begin = self.now()
            work(*arguments)
            self.steps.append((begin, self.now()))

        return timed

    def stalling(self, work: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: Any, **named: Any) -> None:
            begin = self.now()
            work(*arguments, **named)
            self.stalls.append((begin, self.now()))
            if work.__name__ == "save":
                self.saves.append(begin)

        return timed

    def told(self) -> dict[str, float]:
        # The first steps load kernels and fill caches.
        begin, end = self.steps[3][0], self.steps[-1][1]
        return {
            "seconds": end - begin,
            "step": sum(stop - start for start, stop in self.steps[3:]) / len(self.steps[3:]),
            "stalled": sum(stop - start for start, stop in self.stalls if begin <= start and stop <= end),
            "saves": sum(begin <= start <= end for start in self.saves),
        }


if __name__ == "__main__":
    main()
