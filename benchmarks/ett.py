"""Oil temperature of two transformers, 96 hours ahead: our forecasts beside a DLinear trained by Adam as published.

    python benchmarks/ett.py DATA_FOLDER [--only ETTh1] [--models NAME;NAME] [--budget 1000steps] [--seed 0]

DATA_FOLDER holds ETTh1.train_val.csv.gz and so on: rows 0 to 8639 are trained on, 8640 to 11519 are forecast, from
every hour whose 96 hours lie in them (2,785 windows); 336 hours are read. Errors are of values less the mean of the
training rows over their deviation, as in the literature. CPU, one thread.

The published training keeps the epoch with the least error on the validation part; here that part is what is told, so
that `best epoch` has looked at it, and `last epoch` has not. The forecaster keeps its best weights by it too. What is
fitted at once never sees it.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import regard

TRAIN, VALID, HISTORY, HORIZON = 8640, 2880, 336, 96
# Of the published runs of one variable: batches of 32, ten epochs, a rate of 0.005 that is halved after each.
BATCH, EPOCHS, RATE, KERNEL = 32, 10, 0.005, 25
SETTINGS: dict[str, Any] = {"task": "series", "target": "OT", "history": HISTORY, "horizon": HORIZON, "stride": 1}
NONE = {"past": ""}
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "naive (a day ago)": ("naive", {"model.season": 24, **NONE}),
    "dlinear (ridge)": ("dlinear", NONE),
    "lear (lasso)": ("lear", NONE),
    "lear, ridge": ("lear", {"penalty": "ridge", **NONE}),
    "lear, ridge, six past columns": ("lear", {"penalty": "ridge"}),
    "forecaster": ("forecaster", {"evaluate_every": 75, **NONE}),
    "forecaster, six past columns": ("forecaster", {"evaluate_every": 75}),
}


class DLinear(nn.Module):
    """y = W_m m + W_s s + b of one variable: m its moving average, the ends repeated, s = x - m (Zeng et al. 2023)."""

    def __init__(self) -> None:
        super().__init__()
        self.trend, self.rest = (nn.Linear(HISTORY, HORIZON) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x[:, None], (KERNEL // 2, KERNEL // 2), mode="replicate")
        trend = F.avg_pool1d(padded, KERNEL, 1)[:, 0]
        return self.trend(trend) + self.rest(x - trend)


def oil(path: Path) -> np.ndarray:
    """OT, the last column, standardised by its training rows."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    values = np.array([float(line.rsplit(",", 1)[1]) for line in lines])
    return (values - values[:TRAIN].mean()) / values[:TRAIN].std()


def published(values: np.ndarray, seed: int) -> Iterator[tuple[str, float, float, float]]:
    """The last and the best epoch of a DLinear by Adam on squared errors: name, MAE, MSE, seconds."""
    torch.manual_seed(seed)
    series = torch.from_numpy(values).float()
    windows = series.unfold(0, HISTORY + HORIZON, 1)
    train, valid = (
        windows[: TRAIN - HISTORY - HORIZON + 1],
        windows[TRAIN - HISTORY : TRAIN + VALID - HISTORY - HORIZON + 1],
    )
    model, start = DLinear(), time.perf_counter()
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    found = []
    for epoch in range(EPOCHS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * 0.5 ** max(0, epoch - 1)
        for rows in torch.randperm(len(train)).split(BATCH)[: len(train) // BATCH]:
            optimiser.zero_grad()
            F.mse_loss(model(train[rows, :HISTORY]), train[rows, HISTORY:]).backward()
            optimiser.step()
        with torch.no_grad():
            errors = model(valid[:, :HISTORY]) - valid[:, HISTORY:]
        found.append((float(errors.abs().mean()), float(errors.square().mean())))
    seconds = time.perf_counter() - start
    yield "DLinear by Adam, last epoch", *found[-1], seconds
    yield "DLinear by Adam, best epoch", *min(found, key=lambda pair: pair[1]), seconds


def own(path: Path, options: argparse.Namespace) -> Iterator[tuple[str, float, float, float]]:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    deviation = np.array([float(line.rsplit(",", 1)[1]) for line in lines[:TRAIN]]).std()
    for label in options.models.split(";"):
        name, settings = OURS[label]
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            run: Any = regard.train(
                name, str(path), out=Path(folder) / "run", quiet=True, seed=options.seed, device="cpu",
                budget=options.budget, valid=f"tail:{VALID // 24}d", **SETTINGS, **settings,
            )  # fmt: skip
            seconds = time.perf_counter() - start
            scores = run.evaluate().scores
        assert scores["points"] == (VALID - HORIZON + 1) * HORIZON
        yield label, scores["mae"] / deviation, (scores["rmse"] / deviation) ** 2, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="ETTh1,ETTh2")
    parser.add_argument("--models", default=";".join(OURS), help="some of the rows")
    parser.add_argument("--budget", default="1000steps", help="of the forecaster")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | model | MAE | MSE | seconds |\n| --- | --- | --- | --- | --- |")
    for name in options.only.split(","):
        path = options.folder / f"{name}.train_val.csv.gz"
        for rows in (
            published(oil(path), options.seed) if options.models == ";".join(OURS) else (),
            own(path, options),
        ):
            for label, mae, mse, seconds in rows:
                print(f"| {name} | {label} | {mae:.4f} | {mse:.4f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
