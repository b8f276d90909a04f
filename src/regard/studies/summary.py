"""A comparison in a table, a sentence and commands to copy."""

from __future__ import annotations

import math
import shlex
import textwrap
from typing import TYPE_CHECKING, Any, TextIO

from regard.core.registry import entry
from regard.studies.means import mean, mean_slices, of_first
from regard.studies.measure import disagreements
from regard.studies.notes import notes, what_of
from regard.studies.protocol import Protocol
from regard.studies.scaling import AT, families, power_law, winners
from regard.studies.standing import Standing, first_to, ranks, sentence
from regard.tasks import task_named
from regard.terminal.table import aligned, fitted, human, span, visible, width_of
from regard.training.budget import share

if TYPE_CHECKING:
    from regard.studies.comparison import Comparison
    from regard.studies.row import Row

FURTHER = 4
LARGER = "base"
RECALL = "recall by distance"
OVER = 4  # the column of the distance from the best possible score, where that is known
COLUMNS = (
    *("rank#", "model", "score#", "+-#"),
    *("params#", "rate#", "steps#", "time#", "use#", "state#", "memory#"),
)


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
    recall = [recalled(comparison)] if recalled(comparison) else []
    told = [finding(comparison), *recall, *([] if brief else [*law_lines(comparison), *notes(comparison)])]
    if width is not None:
        told = [line for text in told for line in textwrap.wrap(text, width, break_on_hyphens=False)]
    return [*table, "", *told, *([] if brief else ["", *commands(comparison)])]


def ranking(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """The ranking; models without a score come last."""
    metric = comparison.protocol.metric
    unit = next((run["speed_unit"] for row in comparison.rows for run in row.runs), "use")
    columns = [{"score#": f"{metric}#", "use#": f"{unit}#"}.get(name, name) for name in COLUMNS]
    order = comparison.order
    rows = [_cells(str(place), one, comparison) for place, one in zip(ranks(order), order, strict=True)]
    known = {one.label for one in order}
    for row in comparison.rows:
        if row.stopped and row.runs:
            rows.append(_cells("stopped", Standing(row.label, comparison.score(row.label)), comparison))
        elif row.label not in known:
            what = "failed" if row.failed else "stopped" if row.stopped else "-"
            rows.append([what, row.label, *[""] * (len(COLUMNS) - 2)])
    if comparison.optimum is not None:
        columns.insert(OVER, "over best#")
        for cells in rows:
            cells.insert(OVER, _over(cells[1], comparison) if cells[2] else "")
    for cells in rows:
        cells[1] = comparison.row(cells[1]).told
    return columns, rows


def _over(label: str, comparison: Comparison) -> str:
    """How far a model is from the best possible score of its world."""
    return f"{abs(comparison.score(label) - (comparison.optimum or 0.0)):.3g}"


def _cells(rank: str, one: Standing, comparison: Comparison) -> list[str]:
    row = comparison.row(one.label)
    run = row.runs[0]
    half = "" if one.high is None else f"{(one.ends[1] - one.ends[0]) / 2:.2g}"
    carried, memory = mean(row, "state_bytes"), mean(row, "peak_memory")
    edge = "*" if row.on_edge else ""
    return [
        rank,
        one.label,
        f"{one.mean:.4g}",
        half,
        human(row.parameters) if row.parameters else "fitted",
        f"{row.lr:.2g}{edge}" if row.lr else "",
        f"{mean(row, 'step') or 0:,.0f}" if row.parameters else "1 pass",
        span(mean(row, "seconds") or 0.0),
        human(mean(row, "speed") or 0.0),
        (human(carried, "B") + ("+" if run["state_grows"] else "")) if carried else "",
        human(memory, "B") if memory else "",
    ]


def finding(comparison: Comparison) -> str:
    """The sentence."""
    facts: dict[str, dict[str, Any]] = {
        row.label: row.runs[0] | {"speed": mean(row, "speed")} for row in comparison.rows if row.runs
    }
    protocol, metric = comparison.protocol, f"test {comparison.protocol.metric.replace('_', ' ')}"
    told = sentence(comparison.verdict, facts, protocol.budget, metric, what_of(protocol))
    # Losses by different tokens are not set against each other.
    each = {} if protocol.per_byte else facts
    curves = {label: found["curve"] for label, found in each.items() if found.get("curve")}
    level = _common_level(curves)
    first = first_to(curves, level) if level is not None else None
    raced = ""
    if first is not None and len(curves[first[0]]) > 1:
        raced = f" {first[0]} was the first at a held-out loss of {level:.3g}, after {span(first[1])}."
    raced += _overtaken(curves, {row.label for row in comparison.rows if row.fitted})
    if raced and of_first(comparison.rows):
        raced = f" Of the first training of each:{raced}"
    told += raced
    if comparison.optimum is not None:
        told += f" The best possible {comparison.protocol.metric} is {comparison.optimum:.4g}."
    return told


def _overtaken(curves: dict[str, Any], at_once: set[str]) -> str:
    """Of the best model that is fitted at once and then stays where it is: who was the first below it, and when."""
    fitted = {label: points[0]["valid_loss"] for label, points in curves.items() if label in at_once}
    if not fitted:
        return ""
    label = min(fitted, key=lambda name: fitted[name])
    others = {name: points for name, points in curves.items() if name not in fitted}
    later = first_to(others, math.nextafter(fitted[label], -math.inf))
    passed = f"{later[0]} was the first below it, after {span(later[1])}" if later else "no other was below it"
    return f" {label}, fitted at once, stood at a held-out loss of {fitted[label]:.3g}; {passed}." if others else ""


def recalled(comparison: Comparison) -> str:
    """How much of what was told longest ago each model still knows, and what it carries for that; best first."""
    runs = {row.label: row.runs[0] for row in comparison.rows if row.runs}
    sliced = {row.label: mean_slices(row).get(RECALL, {}) for row in comparison.rows}
    held = {label: shares for label, shares in sliced.items() if len(shares) > 1}
    if len(held) < 2:
        return ""
    far = next(reversed(next(iter(held.values()))))
    best_first = sorted(held, key=lambda label: -held[label].get(far, 0.0))
    told = [f"{label} {held[label].get(far, 0.0):.0%}{_carried(runs[label])}" for label in best_first]
    return f"Of the facts told {far} tokens before, recalled are: {', '.join(told)}."


def _carried(run: dict[str, Any]) -> str:
    if not run.get("state_bytes"):
        return ""
    return f" ({human(run['state_bytes'], 'B')}{', growing' if run['state_grows'] else ''})"


def commands(comparison: Comparison) -> list[str]:
    """What to do next, to copy."""
    order = comparison.order
    told = ["Next:", f"  open {shlex.quote(str(comparison.out / 'report.html'))}"]
    if order:
        row = comparison.row(order[0].label)
        where = shlex.quote(str(row.runs[0]["path"]))
        # A forecast is of a table: without one, what was held out is looked at.
        first = "explain" if task_named(comparison.protocol.task).by_time else "generate"
        told += [f"  regard {first} {where}", f"  regard evaluate {where}", f"  regard show {where}"]
        if row.parameters:
            longer = further(row, comparison.protocol)
            told.append(f"  regard train --resume --out {where} --budget {longer}")
            told += [f"  regard train --like {where} --size {LARGER} --budget {longer}"] if _has_larger(row) else []
    return told


def _has_larger(row: Row) -> bool:
    """Whether there is a size above that of a comparison."""
    return LARGER in entry(row.model).sizes and AT not in row.label and not row.pretrained


def further(row: Row, protocol: Protocol) -> str:
    """A budget that goes on from where a training of the comparison ended: four times as far."""
    return share(protocol.main_budget if row.rates else protocol.whole_budget, FURTHER)


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
        work = [(mean(row, "tokens") or 0.0) * (mean(row, "flops_per_token") or 0.0) for row in chosen]
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
