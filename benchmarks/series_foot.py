"""Errors and fit seconds of the fitted forecasts on electricity prices, beside scikit-learn on the same columns.

    python benchmarks/series_foot.py DATA [--only NP,DE] [--days 294] [--every 28d] [--runs FOLDER] [--train STEPS]

DATA holds NP.train.csv.gz and so on, hours with two forecasts known a day ahead; the last `days` are forecast,
each from its midnight. A fit is all that happens from the series to weights, the choice of the penalty by five blocks
of time among it, which scikit-learn makes by its own cross-validation over the same blocks. One thread.

--every  also with what is learnt anew before each block of so long.
--runs   a folder with runs of ensembles by market: those that are there are told, and with
--train  those that are not there are trained first with RECIPE for a budget such as 2000steps, which is for all seeds.
--nets   tells the runs alone, without the models that are fitted at once.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from markets import KNOWN
from sklearn.linear_model import LassoLarsCV, LassoLarsIC, RidgeCV
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor

import regard
from regard.core.fitted import FitSettings, Nobody
from regard.core.registry import entry
from regard.data.example import ExampleData
from regard.data.settings import DataSettings
from regard.fitting.least_squares import RIDGE
from regard.fitting.windows import in_parts
from regard.run.run import load
from regard.tasks.series import SeriesTask

TASK = SeriesTask()
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "naive": ("naive", {}),
    "dlinear": ("dlinear", {}),
    "lear, ridge, level of the training part": ("lear", {"penalty": "ridge", "level": 0}),
    "lear, ridge": ("lear", {"penalty": "ridge"}),
    "lear, ridge, all and the last 364 days": ("lear", {"penalty": "ridge", "windows": (0, 364)}),
    "lear (default: lasso)": ("lear", {}),
}
RECIPE: dict[str, Any] = {"history": 672, "ensemble": 4}


def own(dataset: Any, name: str, settings: dict[str, Any]) -> tuple[Any, float]:
    """The fitted model and its seconds."""
    model = entry(name).config(dataset.spec, "small", **settings).build()
    start = time.perf_counter()
    model.fit(ExampleData(dataset.train, ()), FitSettings(), Nobody())
    return model, time.perf_counter() - start


def peers(dataset: Any, model: Any) -> Iterator[tuple[str, float, float]]:
    """Name, mean absolute error and seconds of scikit-learn's, on the columns of `model`."""
    tables = [_table(model, rows) for rows in (dataset.train, dataset.valid)]
    (x, y), (asked, _) = tables
    mean, spread = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1.0)
    x, asked, folds = (x - mean) / spread, (asked - mean) / spread, KFold(5)
    alphas = [strength * len(x) for strength in RIDGE]
    made = {"RidgeCV": RidgeCV(alphas, cv=folds, scoring="neg_mean_absolute_error")}
    if model.config.penalty == "lasso":
        made = {
            "LassoLarsCV": MultiOutputRegressor(LassoLarsCV(cv=folds, max_iter=2500)),
            "LassoLarsIC (AIC)": MultiOutputRegressor(LassoLarsIC("aic", max_iter=2500)),
        }
    unit = dataset.processor.scales[""].target.scale
    for name, kind in made.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind.fit(x, y)
        seconds = time.perf_counter() - start
        yield name, _missed(model, dataset.valid, torch.from_numpy(kind.predict(asked))) * unit, seconds


def _table(model: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
    parts = list(in_parts(rows, np.arange(len(rows.origins))))
    x = torch.cat([model.columns(*model.stretched(window)) for window, _ in parts])
    return x.numpy(), torch.cat([model.stretch(came, window) for window, came in parts]).numpy()


def _missed(model: Any, rows: Any, told: torch.Tensor) -> float:
    """The mean absolute error of what is told in the numbers that were learnt."""
    missed, at = [], 0
    for window, came in in_parts(rows, np.arange(len(rows.origins))):
        some, at = told[at : at + len(came)], at + len(came)
        missed.append((model.plain(some[..., None], window)[..., 0] - came).abs())
    return float(torch.cat(missed).mean())


def rolled(dataset: Any, name: str, settings: dict[str, Any], every: str) -> float:
    """The mean absolute error with a fit anew before each block."""
    from regard.tasks.rolling import blocks_of

    held = dataset.examples
    blocks = blocks_of([held[0].series], (held[0].time, held[-1].time), every, dataset.processor)
    told = [TASK.told(own(block.dataset, name, settings)[0], dataset.processor, block.examples) for block in blocks]
    model = entry(name).config(dataset.spec, "small", **settings).build()
    return TASK.judged(model, dataset.processor, held, list(np.concatenate(told)), blocks).scores["mae"]


def lines(market: str, options: argparse.Namespace) -> Iterator[list[str]]:
    path = options.folder / f"{market}.train.csv.gz"
    settings = DataSettings(path=str(path), task="series", valid=f"tail:{options.days}d", known=KNOWN[market])
    dataset = TASK.prepare(settings, seed=0)
    for label, (name, settings) in [] if options.nets else OURS.items():
        model, seconds = own(dataset, name, settings)
        scores = TASK.evaluate(model, dataset.processor, dataset.examples).scores
        again = f"{rolled(dataset, name, settings, options.every):.3f}" if options.every else ""
        row = [label, f"{scores['mae']:.3f}", f"{scores['pinball']:.3f}", again, f"{seconds:.2f}"]
        beside = list(peers(dataset, model)) if name == "lear" and "windows" not in settings else []
        for number, (peer, error, theirs) in enumerate(beside or [("", 0.0, 0.0)]):
            told = [peer, f"{error:.3f}", f"{theirs:.2f}", f"{seconds / theirs:.2f}"] if peer else [""] * 4
            yield [*(row if number == 0 else [""] * 5), *told]
    if options.runs is not None:
        yield from _neural(path, options.runs / market, options)


def _neural(path: Path, folder: Path, options: argparse.Namespace) -> Iterator[list[str]]:
    """One seed, in the mean of those of the ensemble, and the ensemble."""
    if options.train and not folder.exists():
        held = {"valid": f"tail:{options.days}d", "known": KNOWN[folder.name], "budget": options.train}
        held |= {"device": "cpu", "threads": 1}
        regard.train("forecaster", path, out=folder, quiet=True, **held, **RECIPE)
    if not folder.exists():
        return
    parts = [load(part, device="cpu") for part in sorted((folder / "parts").iterdir())]
    found = [part.evaluate().scores for part in parts]
    mean = [float(np.mean([scores[name] for scores in found])) for name in ("mae", "pinball")]
    yield [f"forecaster, mean of {len(parts)} seeds", *(f"{value:.3f}" for value in mean), *[""] * 6]
    run = load(folder, device="cpu")
    scores, last = run.evaluate().scores, (folder / "metrics.jsonl").read_text().splitlines()[-1]
    again = f"{run.evaluate(every=options.every).scores['mae']:.3f}" if options.every else ""
    told = [f"{scores[name]:.3f}" for name in ("mae", "pinball")]
    yield [f"forecaster, ensemble of {len(parts)}", *told, again, f"{json.loads(last)['seconds']:.0f}", *[""] * 4]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(KNOWN))
    parser.add_argument("--days", type=int, default=294)
    parser.add_argument("--every", default="")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--train", default="")
    parser.add_argument("--nets", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    again = f"MAE, anew every {options.every}" if options.every else "MAE, fitted anew"
    print(f"| data | model | MAE | pinball | {again} | fit s | scikit-learn | MAE | fit s | times |")
    print("| --- " * 10 + "|")
    for market in options.only.split(","):
        for cells in lines(market, options):
            print(f"| {market} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
