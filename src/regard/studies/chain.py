"""The chain of a model: short trainings at one rate after the other, then, at the best, one for each seed and fold.

A chain asks for trainings and is given what came of them. Those that it asks for together know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import Stopped, UsageError
from regard.run.settings import Settings
from regard.studies.ledger import RATES
from regard.studies.pool.pool import Failed
from regard.studies.protocol import TRIALS, Protocol
from regard.studies.row import Row
from regard.studies.search import Searched
from regard.studies.training import BEHIND
from regard.training.budget import parse
from regard.training.settings import DEFAULT_LR


@dataclass(frozen=True)
class Trial:
    """One training that a model asks for.

    ends   of the part of the model's budget that it is.
    best   held-out losses that it is ended for being behind of.
    tests  it is one of those that are tested; others are for a rate.
    """

    name: str
    told: str
    ends: tuple[float, float]
    changes: dict[str, Any]
    fold: int = 0
    best: Sequence[float] = ()
    tests: bool = True


Outcome = dict[str, Any]
Found = Outcome | Failed | None  # None of a training that has not ended
Steps = Generator[Sequence[Trial], list[Found], None]  # trainings that may be made at once, and what came of them


def chain(row: Row, protocol: Protocol, settings: Settings, fitted: bool) -> Steps:
    """All trainings of a model; `row` is filled in on the way. fitted: the model is fitted at once."""
    is_given = settings.table["train.lr"].place == "--models"
    own = settings["train.lr"] or DEFAULT_LR
    searches = protocol.searches and not fitted and not is_given
    row.lr = None if fitted else own
    if searches:
        yield from rate_search(row, protocol, own)
    first = protocol.slice if searches else 0.0
    budget = protocol.main_budget if searches else protocol.whole_budget
    places = [(seed, fold) for seed in range(1 if fitted else protocol.seeds) for fold in range(protocol.folds)]
    trials = []
    for number, (seed, fold) in enumerate(places):
        ends = [first + (1 - first) * place / len(places) for place in (number, number + 1)]
        changes = {"train.seed": seed} | ({} if fitted else {"train.lr": row.lr, "train.budget": budget})
        name, told = _named(row.label, seed, fold, protocol, fitted)
        trials.append(Trial(name, told, (ends[0], ends[1]), changes, fold))
    found = yield trials
    for one in found:
        if isinstance(one, Failed):
            raise one
        row.runs += [] if one is None else [one]
    if None in found:
        raise Stopped("stopped before the last training")


def rate_search(row: Row, protocol: Protocol, own: float) -> Steps:
    """Short trainings until the best rate lies between two that are worse; the best on validation is taken."""
    trial, found = parse(protocol.trial_budget), Searched(own)
    spent, best = 0.0, None
    while (step := found.next) is not None and protocol.has_room(spent):
        lr = found.rate(step)
        [outcome] = yield [_at_rate(row, protocol, lr, [] if best is None else best["curve"])]
        if isinstance(outcome, Failed):
            raise outcome
        if outcome is None:
            raise Stopped("stopped in the search for a rate")
        early = {"seconds": outcome["seconds"], "steps": outcome["step"]} if outcome["reason"] == BEHIND else {}
        spent += min(trial.amount, early.get(trial.kind, trial.amount))
        if outcome["valid"] is not None and (best is None or outcome["valid"] < best["valid"]):
            best = outcome
        row.rates = sorted([*row.rates, (lr, outcome["valid"])], key=lambda pair: pair[0])
        found.losses[step] = outcome["valid"]
    if found.best is None:
        raise UsageError(f"every rate from {row.rates[0][0]:g} to {row.rates[-1][0]:g} diverged")
    row.lr, row.on_edge = found.rate(found.best), found.next is not None


def _at_rate(row: Row, protocol: Protocol, lr: float, best: Sequence[dict[str, float]]) -> Trial:
    """A short training at one rate. best: the curve of the best one so far."""
    number = len(row.rates)
    ends = [min(1.0, protocol.slice * place / TRIALS) for place in (number, number + 1)]
    changes = {
        "train.lr": lr,
        "train.budget": protocol.trial_budget,
        "train.seed": 0,
        "train.ensemble": 1,  # a rate that suits one suits its like
        "train.choose_by": "loss",
    }
    losses = [point["valid_loss"] for point in best]
    name = f"{RATES}/{row.label}-{lr:g}"
    return Trial(name, f"rate {number + 1}", (ends[0], ends[1]), changes, best=losses, tests=False)


def _named(label: str, seed: int, fold: int, protocol: Protocol, fitted: bool) -> tuple[str, str]:
    """The name of a training among those of its model, and what a person is told of it."""
    seeds, folds = 1 if fitted else protocol.seeds, protocol.folds
    name = "".join([label, f"-{seed}" if seeds > 1 else "", f"-fold{fold + 1}" if folds > 1 else ""])
    told = [f"seed {seed + 1} of {seeds}"] if seeds > 1 else []
    told += [f"fold {fold + 1} of {folds}"] if folds > 1 else []
    return name, ", ".join(told) or ("fitting" if fitted else "training")
