"""A comparison in a table, a sentence and commands to copy."""

from __future__ import annotations

import math
import shlex
import textwrap
from typing import TYPE_CHECKING, Any, TextIO

from regard.studies.measure import disagreements
from regard.studies.protocol import RATE_STEP, Protocol
from regard.studies.scaling import AT, families, power_law, winners
from regard.studies.standing import PARTS, SEEDS, Standing, first_to, sentence, standing
from regard.terminal.table import aligned, fitted, human, span, visible, width_of
from regard.training.budget import share

if TYPE_CHECKING:
    from regard.studies.comparison import Comparison
    from regard.studies.race import Row

FEW_STEPS, FEW_TOKENS = 30, 2000
FURTHER = 4
OVER = 5  # the column of the distance from the best possible score, where that is known
INTERVAL = "+- over"
WHAT = ("rank#", "model", "score#", "+-#", INTERVAL)
COST = ("parameters#", "rate#", "steps#", "time#", "use#", "state#", "memory#")
COLUMNS = WHAT + COST


def show(comparison: Comparison, stream: TextIO, *, brief: bool = False) -> None:
    """The whole: on a terminal its sentences are wrapped between words, in a pipe each is a line.

    brief: the ranking and the finding alone.
    """
    for line in lines(comparison, width_of(stream), brief=brief):
        print(visible(line), file=stream)


def lines(comparison: Comparison, width: int | None = None, *, brief: bool = False) -> list[str]:
    """The whole; table and sentences in lines of at most `width`, commands as they are."""
    columns, rows = ranking(comparison)
    table = aligned(columns, rows) if width is None else fitted(columns, rows, width, columns.index("model"))
    told = [finding(comparison), *([] if brief else [*law_lines(comparison), *notes(comparison)])]
    if width is not None:
        told = [line for text in told for line in textwrap.wrap(text, width, break_on_hyphens=False)]
    return [*table, "", *told, *([] if brief else ["", *commands(comparison)])]


def ranking(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """The ranking; models without a score come last. What the intervals are over is a column where they differ."""
    metric = comparison.protocol.metric
    columns = [metric + "#" if name == "score#" else name for name in COLUMNS]
    order = comparison.order
    rows = [_cells(str(number), one, comparison) for number, one in enumerate(order, 1)]
    known = {one.label for one in order}
    for row in comparison.rows:
        if row.stopped and row.runs:
            scores = [run["score"] for run in row.runs]
            rows.append(_cells("stopped", standing(row.label, scores, row.runs[0]["parts"]), comparison))
        elif row.label not in known:
            what = "failed" if row.failed else "stopped" if row.stopped else "-"
            rows.append([what, row.label, *[""] * (len(COLUMNS) - 2)])
    if comparison.optimum is not None:
        columns.insert(OVER, "over best#")
        for cells in rows:
            cells.insert(OVER, _over(cells[1], comparison) if cells[2] else "")
    if len(intervals(comparison)) < 2:
        place = columns.index(INTERVAL)
        columns, rows = columns[:place] + columns[place + 1 :], [row[:place] + row[place + 1 :] for row in rows]
    return columns, rows


def intervals(comparison: Comparison) -> list[str]:
    """What the intervals were taken over, each kind once."""
    return list(dict.fromkeys(f"{one.count} {one.over}" for one in comparison.order if one.over))


def _over(label: str, comparison: Comparison) -> str:
    """How far a model is from the best possible score of its world."""
    scores = [run["score"] for run in comparison.row(label).runs]
    return f"{abs(sum(scores) / len(scores) - (comparison.optimum or 0.0)):.3g}"


def _cells(rank: str, one: Standing, comparison: Comparison) -> list[str]:
    row = comparison.row(one.label)
    run = row.runs[0]
    half = "" if one.high is None else f"{one.high - one.mean:.2g}"
    seconds = sum(each["seconds"] for each in row.runs) / len(row.runs)
    edge = "*" if row.on_edge else ""
    return [
        rank,
        one.label,
        f"{one.mean:.4g}",
        half,
        f"{one.count} {one.over}" if one.over else "",
        human(row.parameters) if row.parameters else "fitted",
        f"{row.lr:.2g}{edge}" if row.lr else "",
        f"{run['step']:,}" if row.parameters else "1 pass",
        span(seconds),
        f"{human(run['speed'])} {run['speed_unit']}",
        (human(run["state_bytes"], "B") + ("+" if run["state_grows"] else "")) if run["state_bytes"] else "",
        human(run["peak_memory"], "B") if run.get("peak_memory") else "",
    ]


def finding(comparison: Comparison) -> str:
    """The sentence."""
    facts = {row.label: row.runs[0] for row in comparison.rows if row.runs}
    told = sentence(comparison.order, facts, comparison.protocol.budget, f"test {comparison.protocol.metric}")
    curves = {label: found["curve"] for label, found in facts.items() if found.get("curve")}
    level = _common_level(curves)
    if level is not None and (first := first_to(curves, level)) is not None:
        told += f" {first[0]} was the first at a held-out loss of {level:.3g}, after {span(first[1])}."
    if comparison.optimum is not None:
        told += f" The best possible {comparison.protocol.metric} is {comparison.optimum:.4g}."
    return told


def notes(comparison: Comparison) -> list[str]:
    """What was held equal, what was not, and what to be careful of."""
    protocol, rows = comparison.protocol, comparison.rows
    unlike = orders(comparison)
    order = "" if unlike else ", order of samples"
    tried = f"{len(protocol.factors)}{f' or {len(protocol.factors) + 1}' if protocol.may_extend else ''} learning rates"
    spent = f"up to {protocol.slice:.0%} of it for {tried}, {1 - protocol.slice:.0%} for "
    told = [
        f"Held equal: data, tokens, split{order}, and a budget of {protocol.budget} a model ({spent}{protocol.seeds} "
        f"seed{'s' if protocol.seeds > 1 else ''}). Chosen on validation alone; each training is tested once, "
        f"when it has ended.",
    ]
    apart = [f"{row.label} {row.note}" for row in rows if row.note] + unlike
    if apart:
        told.append(f"Not equal: {'; '.join(apart)}.")
    best = front(comparison)
    if 0 < len(best) < len(comparison.order):
        what = "quality, training time, speed of use and memory"
        told.append(f"By these numbers behind no other in all of {what}: {', '.join(best)}.")
    edges = [row for row in rows if row.on_edge]
    if edges:
        names = ", ".join(row.label for row in edges)
        tries = shlex.quote(",".join(_further_out(row) for row in edges if AT not in row.label))
        further = f" To try that: --models {tries}" if tries != "''" else ""
        told.append(
            f"* the best rate of {names} is the lowest or highest tried: one further out may be better.{further}"
        )
    few = [row.label for row in rows if row.parameters and row.runs and row.runs[0]["step"] < FEW_STEPS]
    if few:
        told.append(f"Fewer than {FEW_STEPS} steps, too few to mean much: {', '.join(few)}. A larger budget says more.")
    if 0 < int(comparison.facts.get("test", FEW_TOKENS)) < FEW_TOKENS and "vocabulary" in comparison.facts:
        told.append(f"The test part has {comparison.facts['test']} tokens: with so few, chance decides much.")
    told += chances(comparison)
    told += [f"{row.label} failed: {row.failed}" for row in comparison.failed]
    told += [f"{row.label} was stopped {_reached(row)}" for row in rows if row.stopped]
    told += [f"{row.label}: its score is not finite." for row in rows if row.runs and not _is_finite(row)]
    if comparison.left_out:
        told.append(
            f"Left out, as not named this time: {', '.join(comparison.left_out)}. The runs are kept; --models with all "
            f"names has them in again."
        )
    if comparison.stopped:
        told.append("Stopped early: the same command goes on where it was.")
    return told


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


def _is_finite(row: Row) -> bool:
    return all(math.isfinite(run["score"]) for run in row.runs)


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


def chances(comparison: Comparison) -> list[str]:
    """What each interval is of."""
    by = {over: [one.label for one in comparison.order if one.over == over] for over in (SEEDS, PARTS)}
    same = intervals(comparison)
    over = f"+- is over {same[0]}" if len(same) == 1 else "+- is"
    if by[PARTS] and not by[SEEDS]:
        return [f"{over}, of the test text alone: one training each tells nothing of the chance of training."]
    if by[PARTS]:
        return [
            f"+- of {', '.join(by[PARTS])} is over parts of the test text, of the others over seeds: two kinds of "
            f"chance, which are not set against each other."
        ]
    return [f"{over}, the chance of training."] if len(same) == 1 else []


def front(comparison: Comparison) -> list[str]:
    """The Pareto front: models that no other one equals in all of quality and cost and beats in one."""
    sign = 1 if comparison.protocol.lower_is_better else -1
    costs = {}
    for one in comparison.order:
        run = comparison.row(one.label).runs[0]
        costs[one.label] = (sign * one.mean, run["seconds"], -run["speed"], run.get("peak_memory") or 0)
    return [
        label
        for label, own in costs.items()
        if not any(other != own and all(b <= a for a, b in zip(own, other, strict=True)) for other in costs.values())
    ]


def commands(comparison: Comparison) -> list[str]:
    """What to do next, to copy."""
    order = comparison.order
    told = ["Next:", f"  open {shlex.quote(str(comparison.out / 'report.html'))}"]
    if order:
        row = comparison.row(order[0].label)
        where = shlex.quote(str(row.runs[0]["path"]))
        told += [f"  regard generate {where}", f"  regard evaluate {where}", f"  regard show {where}"]
        if row.parameters:
            told.append(f"  regard train --resume --out {where} --budget {further(row, comparison.protocol)}")
    return told


def further(row: Row, protocol: Protocol) -> str:
    """A budget that goes on from where a training of the comparison ended: four times as far."""
    return share(protocol.main_budget if row.rates else share(protocol.budget, 1 / protocol.seeds), FURTHER)


def contrasts(comparison: Comparison) -> list[dict[str, Any]]:
    """Examples that some got right and others wrong."""
    return disagreements([(row.label, row.runs[0]) for row in comparison.rows if row.runs])


def laws(comparison: Comparison) -> dict[str, Any]:
    """Of each model that was trained at several sizes: its points and the power law through them."""
    rows = {row.label: row for row in comparison.rows if row.runs and not row.stopped}
    found: dict[str, Any] = {}
    for name, labels in families(list(rows)).items():
        chosen = [rows[label] for label in labels]
        losses = [sum(_loss(run) for run in row.runs) / len(row.runs) for row in chosen]
        work = [row.runs[0]["tokens"] * (row.runs[0].get("flops_per_token") or 0.0) for row in chosen]
        sides = {"parameters": [float(row.parameters) for row in chosen], "operations": work}
        found[name] = {}
        for by, sizes in sides.items():
            points = sorted((size, loss) for size, loss in zip(sizes, losses, strict=True) if size > 0)
            law = power_law(points)
            found[name][by] = {"points": points, "law": vars(law) if law else None}
    return found


def law_lines(comparison: Comparison) -> list[str]:
    """What size brings, in words."""
    told = []
    for name, one in laws(comparison).items():
        law = one["parameters"]["law"]
        if law is not None:
            known = "" if law["low"] is None else f" ({law['low']:.3f} to {law['high']:.3f})"
            told.append(
                f"{name}: the loss falls as parameters to the power of -{law['b']:.3f}{known}, R2 {law['r2']:.2f}."
            )
    best = winners({one.label: one.mean for one in comparison.order}, comparison.protocol.lower_is_better)
    if best:
        told.append("Ahead by size: " + ", ".join(f"{name} at {size} of the common size" for size, name in best) + ".")
    return told


def _loss(run: dict[str, Any]) -> float:
    """What a power law is fitted to: the test loss, or where the task has another score the held-out loss."""
    if "loss" in run["scores"]:
        return float(run["scores"]["loss"])
    return min((point["valid_loss"] for point in run["curve"]), default=0.0)


def _common_level(curves: dict[str, Any]) -> float | None:
    """The lowest held-out loss that at least half of the models reached."""
    lowest = sorted(min(point["valid_loss"] for point in points) for points in curves.values() if points)
    return lowest[len(lowest) // 2] if len(lowest) > 1 else None


def samples(rows: tuple[Row, ...]) -> list[tuple[str, str]]:
    """What each model writes."""
    return [(row.label, row.runs[0]["sample"]) for row in rows if row.runs]
