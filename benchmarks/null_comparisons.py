"""How often a comparison names a winner where there is none, and how often it finds one that there is.

    python benchmarks/null_comparisons.py --out /tmp/null [--seeds 15] [--comparisons 1000] [--sets A,B]

One model is trained at several seeds on each of a few sets, and the score of every test example is kept (`SET.npy` in
the folder; one that is there is not trained again). A null comparison draws trainings for each of some models of the
same name, and test examples for all of them: whoever wins, wins by chance. For the power one of the models is made
better by a stated part of its score. The page is in benchmarks/results/verdicts.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard.evaluation.each import EachScore
from regard.evaluation.student import outside
from regard.studies.verdict import LEVEL, Contestant, judged

SEEDS, TRAININGS = 15, 3
SHIFTS = (0.005, 0.01, 0.02, 0.05, 0.1)
MODELS = (2, 3, 5)


@dataclass(frozen=True)
class Trained:
    """What is trained at every seed: a model on a world, for so many steps at a rate."""

    model: str
    data: str
    steps: int
    rate: float


SETS = {
    "stories": Trained("lstm", "world:stories?train=400&valid=200&seed=0", 150, 0.02),
    "reviews": Trained("classifier", "world:reviews?train=300&valid=300&seed=0", 150, 0.01),
    "dates": Trained("seq2seq", "world:dates?train=400&valid=150&seed=0", 250, 0.01),
    "electricity": Trained("forecaster", "world:electricity?train=200&valid=120&seed=0", 100, 0.01),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--comparisons", type=int, default=1000)
    options.add_argument("--sets", default=",".join(SETS), help="joined by commas")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows, power = [], []
    for name in given.sets.split(","):
        one = SETS[name]
        pool, lower = scores_of(given.out / f"{name}.npy", one, given.seeds)
        means = pool[:, 0].sum(1) / pool[:, 1].sum(1)
        told = [f"{name}, {one.model}", pool.shape[2], f"{means.mean():.4g}", f"{means.std(ddof=1):.2g}"]
        false = [share(null(pool, models, given.comparisons, lower)) for models in MODELS]
        rows.append([*told, *false, share(one_each(pool, given.comparisons))])
        power.append([told[0], *(share(shifted(pool, shift, given.comparisons // 4, lower)) for shift in SHIFTS)])
    heads = ["set", "examples", "mean", "between seeds", *(f"{n} models" for n in MODELS), "one training each"]
    print(table(heads, rows), table(["set", *(f"{shift:.1%}" for shift in SHIFTS)], power), sep="\n\n")


def scores_of(path: Path, what: Trained, seeds: int) -> tuple[np.ndarray, bool]:
    """Values and weights of every example in each training, (seeds, 2, examples), and whether lower is better."""
    if not path.exists():
        found = []
        for seed in range(seeds):
            each = _trained(what, seed)
            found.append(np.stack([each.values, each.weights]))
        np.save(path, np.stack(found))
    from regard.core.registry import entry
    from regard.tasks import task_named

    lower = task_named(entry(what.model).task).lower_is_better
    return np.load(path), lower


def _trained(what: Trained, seed: int) -> EachScore:
    with tempfile.TemporaryDirectory() as folder:
        run: Any = regard.train(
            what.model,
            what.data,
            budget=f"{what.steps}steps",
            size="tiny",
            lr=what.rate,
            seed=seed,
            batch_size=8,
            out=Path(folder) / "run",
            quiet=True,
        )
        each = run.task.evaluate(run.model, run.processor, run.held_out("valid")).each()
        return each.in_blocks(round(len(each) ** (1 / 3))) if run.task.by_time else each


def drawn(pool: np.ndarray, models: int, times: int, trainings: int = TRAININGS) -> Iterator[list[Contestant]]:
    """Models that are the same one: other trainings of it, on examples that are drawn anew for all."""
    chance = np.random.default_rng(0)
    count = pool.shape[2]
    for _ in range(times):
        chosen = chance.permutation(len(pool))[: models * trainings].reshape(models, trainings)
        examples = chance.integers(count, size=count)
        yield [
            Contestant(str(number), [EachScore(*pool[seed][:, examples]) for seed in seeds])
            for number, seeds in enumerate(chosen)
        ]


def null(pool: np.ndarray, models: int, times: int, lower: bool) -> list[bool]:
    """Whether a winner was named, in each comparison of models that are the same."""
    return [judged(found, lower).winner is not None for found in drawn(pool, models, times)]


def one_each(pool: np.ndarray, times: int) -> list[bool]:
    """What would be claimed of one training each, from the examples alone: the test that is not made."""
    claimed = []
    for first, second in drawn(pool, 2, times, trainings=1):
        (one,), (other,) = first.trainings, second.trainings
        apart = (one.values - other.values) / one.weights.mean()
        error = apart.std(ddof=1) / len(apart) ** 0.5
        claimed.append(bool(error) and outside(apart.mean() / error, len(apart) - 1) < LEVEL)
    return claimed


def shifted(pool: np.ndarray, shift: float, times: int, lower: bool) -> list[bool]:
    """Whether the better one was named the winner, which is so by a part `shift` of its score."""
    found = []
    for better, other in drawn(pool, 2, times):
        factor = 1 - shift if lower else 1 + shift
        made = [EachScore(each.values * factor, each.weights) for each in better.trainings]
        found.append(judged([Contestant("better", made), other], lower).winner == "better")
    return found


def share(found: Sequence[bool]) -> str:
    return f"{sum(found) / len(found):.1%}"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    main()
