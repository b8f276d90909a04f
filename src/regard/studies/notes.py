"""What is to be said of a comparison beside its finding: what was equal, what was not, what to be careful of."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.studies.means import mean
from regard.studies.outcome import NOTES, READS, SIDE_BY_SIDE
from regard.studies.protocol import Protocol
from regard.studies.row import read_each
from regard.studies.scaling import AT
from regard.studies.search import RATE_STEP
from regard.tasks import task_named
from regard.tasks.verbs import Generates
from regard.terminal.label import several

if TYPE_CHECKING:
    from regard.studies.comparison import Comparison
    from regard.studies.row import Row

FEW_STEPS, FEW_TOKENS = 30, 2000
FEW_EXAMPLES = 6  # that differ, below which no p is under 5%: see evaluation/signs
TEXT = "text"
ITSELF = ("text", "letters")  # what models read for which no tokenizer has decided what a word is


def notes(comparison: Comparison) -> list[str]:
    """What was held equal, what was not, and what to be careful of."""
    rows = comparison.rows
    unlike = orders(comparison)
    told = [held_equal(comparison, "" if unlike else ", order of samples"), *tested(comparison), *sizes(comparison)]
    missed = unknown(rows)
    per_byte = comparison.protocol.per_byte
    by_model = [f"{label} does not know {share:.1%} of its test tokens" for label, share in missed.items()]
    apart = [f"{row.label} {row.note}" for row in rows if row.note] + unlike + (by_model if per_byte else [])
    if apart:
        told.append(f"Not equal: {'; '.join(apart)}.")
    if missed and per_byte:
        told.append("What an unknown token stands for is counted: of a word 8 bits a byte, of a character its choice.")
    elif missed:
        told.append(
            f"{max(missed.values()):.1%} of the test tokens are unknown; what they stand for is not in the loss."
        )
    told += pretrained(rows) + side_by_side(rows)
    best = front(comparison)
    if 0 < len(best) < len(comparison.order):
        what = "quality, training time, speed of use and memory"
        told.append(f"By these numbers behind no other in all of {what}: {', '.join(best)}.")
    told += starred(rows)
    few = [row.label for row in rows if row.parameters and (mean(row, "step") or FEW_STEPS) < FEW_STEPS]
    if few:
        told.append(f"Fewer than {FEW_STEPS} steps, too few to mean much: {', '.join(few)}. A larger budget says more.")
    told += [line for row in rows for line in of_fits(row)]
    told += [f"{row.label} failed: {row.failed}" for row in comparison.failed]
    told += [f"{row.label} was stopped {_reached(row)}" for row in rows if row.stopped]
    told += [f"{row.label}: its score is not finite." for row in rows if row.runs and not row.is_finite]
    if comparison.left_out:
        told.append(
            f"Left out, as not named this time: {', '.join(comparison.left_out)}. The runs are kept; --models with all "
            f"names has them in again."
        )
    if comparison.stopped:
        told.append("Stopped early: the same command goes on where it was.")
    return told


def of_fits(row: Row) -> list[str]:
    """What its trainings have noted, such as that a solver did not converge."""
    every = [note for run in row.runs for note in dict.fromkeys(run.get(NOTES, ()))]
    of_some = {note: every.count(note) for note in dict.fromkeys(every) if every.count(note) < len(row.runs)}
    return [
        f"{row.label}: {note}{f' (in {of_some[note]} of {len(row.runs)} trainings)' if note in of_some else ''}."
        for note in dict.fromkeys(every)
    ]


def side_by_side(rows: Sequence[Row]) -> list[str]:
    """That trainings shared a machine or a cluster, so that seconds and speeds are of a busy one."""
    most = max((run.get(SIDE_BY_SIDE, 1) for row in rows for run in row.runs), default=1)
    if most == 1:
        return []
    return [f"Up to {most} trainings side by side: each had its own budget, times and speeds are of machines at work."]


def held_equal(comparison: Comparison, order: str) -> str:
    """What all models had alike, and how the budget of each was spent. order: of samples, where it was one."""
    protocol = comparison.protocol
    rows = [row for row in comparison.rows if row.runs]
    own = [row.label for row in rows if row.runs[0].get(READS) in ITSELF]
    tokens = "" if protocol.per_byte or len(own) == len(rows) > 0 else ", tokens"
    if own and tokens:
        tokens += f" (but {', '.join(own)} read{'s' if len(own) == 1 else ''} the text itself, whatever its tokens)"
    rates = f"at most {protocol.slice:.0%} of it for short trainings at learning rates, the rest for "
    seeds = f"{protocol.seeds} seed{'s' if protocol.seeds > 1 else ''}"
    spent = f"{rates if protocol.searches else ''}{seeds}{f' on {protocol.folds} folds' if protocol.folds > 1 else ''}"
    return (
        f"Held equal: data{tokens}, split{order}, and a budget of {protocol.budget} a model ({spent}). Chosen on "
        f"validation alone; each training is tested once, when it has ended."
    )


def tested(comparison: Comparison) -> list[str]:
    """On how much the scores were taken, and what their intervals are of."""
    order, facts = comparison.order, comparison.facts
    if not order:
        return []
    texts, count = what_of(comparison.protocol) == TEXT, comparison.verdict.examples
    if count < 2:
        is_told = all(read_each(run, by_time=False) is not None for row in comparison.rows for run in row.runs)
        why = "Tested on 1 example, and from one" if is_told else "Test examples were not told one by one:"
        return [f"{why} there are no intervals."]
    tokens = next((run["scores"].get("tokens") for row in comparison.rows for run in row.runs), None)
    size = f"{tokens:,} tokens in {count} documents or stretches" if texts and tokens else several(count, "example")
    seeds = max(one.seeds for one in order)
    chance = f"the chance of the test and of {seeds} trainings" if seeds > 1 else "the chance of the test alone"
    told = [f"Tested on {size}. +- is half of a 95% interval, {chance}."]
    if count < FEW_EXAMPLES:
        told.append(f"Of {count} examples no difference is certain, however large: it takes {FEW_EXAMPLES}, all alike.")
    alike = [one.label for one in order if one.low is None]
    if alike:
        told.append(f"No interval of {', '.join(alike)}: the score is the same on every example.")
    if texts and 0 < int(facts.get("test", FEW_TOKENS)) < FEW_TOKENS and "vocabulary" in facts:
        told.append(f"The test part has {facts['test']} tokens: with so few, chance decides much.")
    return told


def what_of(protocol: Protocol) -> str:
    """What the data is, in a word."""
    return TEXT if isinstance(task_named(protocol.task), Generates) else "test"


def sizes(comparison: Comparison) -> list[str]:
    """How many targets each parameter saw, which is what the size was to be chosen by."""
    rows = [row for row in comparison.rows if row.parameters and row.runs and not row.pretrained]
    seen = [(mean(row, "tokens") or 0.0) / row.parameters for row in rows]
    if not seen:
        return []
    low, high = (f"{value:.2g}" for value in (min(seen), max(seen)))
    unit = task_named(comparison.protocol.task).unit
    return [f"A parameter saw {low if low == high else f'{low} to {high}'} {unit} in one training."]


def unknown(rows: Sequence[Row]) -> dict[str, float]:
    """By model the share of the test's tokens that its tokenizer does not know, where there are any."""
    shares = {row.label: [run["scores"].get("unknown_share") or 0.0 for run in row.runs] for row in rows if row.runs}
    return {label: sum(found) / len(found) for label, found in shares.items() if any(found)}


def pretrained(rows: Sequence[Row]) -> list[str]:
    """What is to be known of models that had learnt before they came."""
    names = [row.label for row in rows if row.pretrained]
    if not names:
        return []
    return [
        f"Pretrained: {', '.join(names)}. What such a model has read before is not counted in its budget, and may hold "
        f"the text of the test."
    ]


def starred(rows: Sequence[Row]) -> list[str]:
    """The models whose best rate has a neighbour that was not tried, with a way to try it."""
    edges = [row for row in rows if row.on_edge]
    if not edges:
        return []
    names = ", ".join(row.label for row in edges)
    tries = shlex.quote(",".join(_further_out(row) for row in edges if AT not in row.label))
    further = f" To try that: --models {tries}" if tries != "''" else ""
    return [f"* the best rate of {names} is the lowest or highest tried: one further out may be better.{further}"]


def _further_out(row: Row) -> str:
    """A model with the rate beyond the edge, as `--models` takes it."""
    lr = row.lr or 0.0
    rate = lr / RATE_STEP if row.rates and lr == row.rates[0][0] else lr * RATE_STEP
    return f"{row.label}{'&' if '?' in row.label else '?'}lr={rate:.2g}"


def _reached(row: Row) -> str:
    """How far a model was when a signal came: what was not trained to its end is not tested."""
    if row.held_out is not None:
        return f"at a held-out loss of {row.held_out:.4g} and not tested."
    return "between two seeds: its score is of fewer." if row.runs else "before its first evaluation."


def orders(comparison: Comparison) -> list[str]:
    """How samples came to each model, where not to all alike: which text is read when, and in what pieces."""
    found: dict[str, list[str]] = {}
    for row in comparison.rows:
        kind, size, length = (row.runs[0].get("samples") if row.runs else None) or ("", 0, 0)
        if kind:
            how = {"windows": "windows drawn at random", "lanes": "on from where the batch before ended"}.get(
                kind, kind
            )
            found.setdefault(f"{how}, {size} of {length} at a time", []).append(row.label)
    return [f"{', '.join(labels)} read {how}" for how, labels in found.items()] if len(found) > 1 else []


def front(comparison: Comparison) -> list[str]:
    """The Pareto front: models that no other one equals in all of quality and cost and beats in one."""
    sign = 1 if comparison.protocol.lower_is_better else -1
    costs = {}
    for one in comparison.order:
        row = comparison.row(one.label)
        seconds, speed, memory = (mean(row, key) or 0.0 for key in ("seconds", "speed", "peak_memory"))
        costs[one.label] = (sign * one.mean, seconds, -speed, memory)
    return [
        label
        for label, own in costs.items()
        if not any(other != own and all(b <= a for a, b in zip(own, other, strict=True)) for other in costs.values())
    ]
