"""The charts of a comparison's page: each says something, shows one colour per model, and has its numbers to copy.

Where the best possible loss is known, the distance from it is drawn by its logarithm: a model that is far behind then
flattens no other. What is the same for all by design, such as the time of a training with a budget in seconds, is not
drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from regard.charts.chart import Series, Style, interval_chart, line_chart, point_chart
from regard.charts.page import numbers
from regard.charts.plot import Axis
from regard.studies.means import mean, mean_slices, of_first, pooled_reliability
from regard.studies.palette import styles_of
from regard.studies.row import Row
from regard.studies.scaling import families
from regard.studies.summary import RECALL, laws
from regard.training.budget import parse

if TYPE_CHECKING:
    from regard.studies.comparison import Comparison

BROAD, NARROW = 1040, 460
NEAREST = 1e-3  # nats from the best possible, below which a held-out part of some thousand tokens tells nothing
APART = 2.0  # times the lowest that the highest cost must be to be worth a chart
ENOUGH = 5  # answers of about one confidence whose share of right ones is worth a point
# What slices may be by where a line between them means something. Classes may be called 0, 1 and 2 and have no order.
MEASURES = frozenset({"distance", "length", "quantile", "step", "block"})
TELLING = 3.0  # times the worst final loss that a curve is shown from


@dataclass(frozen=True)
class Chart:
    """What a chart shows. joined: points are joined by lines."""

    title: str
    series: Sequence[Series]
    x: Axis
    y: Axis
    joined: bool = True

    def html(self, styles: Mapping[str, Style], *, first: bool = False) -> str:
        """A figure with its numbers; the first one of a page is as broad as the page."""
        draw = line_chart if self.joined else point_chart
        told = [[one.name, self._across(a), b] for one in self.series for a, b in one.points]
        csv = numbers(["model", self.x.label, self.y.label], told)
        narrow = draw(self.title, self.series, self.x, self.y, styles, NARROW)
        if not first:
            return f"<figure>{narrow}{csv}</figure>"
        return _first(draw(self.title, self.series, self.x, self.y, styles, BROAD), narrow, csv)

    def _across(self, value: float) -> object:
        return self.x.names[int(value)] if self.x.names else value


def _first(broad: str, narrow: str, csv: str) -> str:
    return (
        f'<figure class="first"><div class="broad">{broad}</div><div class="narrow" aria-hidden="true">{narrow}</div>'
        f"{csv}</figure>"
    )


def first_chart(comparison: Comparison) -> str:
    """What answers at a glance: how far back each model recalls, where facts are asked for, else the scores."""
    styles = styles_of(comparison.rows)
    recall = [chart for name, chart in slices(comparison) if name == RECALL]
    return recall[0].html(styles, first=True) if recall else scores(comparison, styles, first=True)


def charts(comparison: Comparison) -> list[str]:
    """The others, those that say most first."""
    styles = styles_of(comparison.rows)
    sliced = slices(comparison)
    has_recall = any(name == RECALL for name, _ in sliced)
    shown = [
        *_time(comparison),
        *_recalls(comparison),
        *(chart for name, chart in sliced if name != RECALL),
        *_reliability(comparison),
        *_tradeoffs(comparison),
    ]
    drawn = [chart.html(styles) for chart in shown]
    return [scores(comparison, styles), *drawn] if has_recall else drawn


def further_charts(comparison: Comparison) -> list[str]:
    """Loss by tokens and by operations, which do not depend on the machine."""
    styles, rows = styles_of(comparison.rows), [row for row in _shown(comparison) if row.parameters]
    by_tokens = [(row, 1.0) for row in rows]
    by_operations = [(row, float(row.runs[0].get("flops_per_token") or 0.0)) for row in rows]
    found = []
    for label, each in (("tokens", by_tokens), ("operations", by_operations)):
        lines = [(row, [(point["tokens"] * cost, point) for point in row.runs[0]["curve"]]) for row, cost in each]
        found += _losses(comparison, f"Held-out loss by {label}{of_first(rows)}", label, lines)
    return [chart.html(styles) for chart in found]


def scores(comparison: Comparison, styles: Mapping[str, Style], *, first: bool = False) -> str:
    """The test score of each model with its interval, as distance from the best possible where that is known."""
    standing, best = comparison.order, comparison.optimum
    metric = comparison.protocol.metric.replace("_", " ")
    sign = 1.0 if comparison.protocol.lower_is_better else -1.0
    isfar = best is not None and bool(standing) and all(sign * (one.mean - best) > NEAREST for one in standing)

    def distance(value: float) -> float:
        return value if not isfar or best is None else max(NEAREST, sign * (value - best))

    side = "above" if comparison.protocol.lower_is_better else "below"
    title = f"Test {metric} {side} the best possible" if isfar else f"Test {metric}"
    axis = Axis(f"{'logarithmic; ' if isfar else ''}lines: 95% interval", log=isfar)
    rows = [(one.label, distance(one.mean)) for one in standing]
    ends = [(distance(one.ends[0]), distance(one.ends[1])) for one in standing]
    csv = numbers(["model", metric, "low", "high"], [[one.label, one.mean, one.low, one.high] for one in standing])
    narrow = interval_chart(title, rows, axis, ends, styles, NARROW)
    if not first:
        return f"<figure>{narrow}{csv}</figure>"
    return _first(interval_chart(title, rows, axis, ends, styles, BROAD), narrow, csv)


def slices(comparison: Comparison) -> list[tuple[str, Chart]]:
    """The score by length or distance as a line for each model, by class as points."""
    rows = _shown(comparison)
    sliced = {row.label: mean_slices(row) for row in rows}
    found = []
    for name in dict.fromkeys(name for values in sliced.values() for name in values):
        held = {label: values.get(name, {}) for label, values in sliced.items()}
        labels = list(dict.fromkeys(one for values in held.values() for one in values))
        if len(labels) < 2:
            continue
        lines = [
            Series(label, [(float(labels.index(key)), value) for key, value in values.items()])
            for label, values in held.items()
        ]
        what, _, by = name.rpartition("by ")
        across = Axis(by or "slice", names=tuple(labels))
        if name == RECALL:
            across, up = replace(across, label="tokens since it was told"), Axis("share right", low=0.0, high=1.0)
            found.append((name, Chart("Facts recalled, by how long ago they were told", lines, across, up)))
        else:
            up = Axis(what.strip() or comparison.protocol.metric.replace("_", " "))
            found.append((name, Chart(name.capitalize(), lines, across, up, joined=by in MEASURES and _rises(labels))))
    return found


def _rises(labels: Sequence[str]) -> bool:
    """Whether slices are numbers or ranges in their order."""
    begun = [re.match(r"\d+(\.\d+)?", label) for label in labels]
    numbers = [float(one.group()) for one in begun if one is not None]
    return len(numbers) == len(labels) and all(a < b for a, b in pairwise(numbers))


def _shown(comparison: Comparison) -> list[Row]:
    return [row for row in comparison.rows if row.runs]


def _time(comparison: Comparison) -> list[Chart]:
    """Held-out loss by seconds; a model that is fitted at once stays where it is."""
    rows = _shown(comparison)
    lines = [(row, [(point["seconds"], point) for point in row.runs[0]["curve"]]) for row in rows]
    last = max((x for _, points in lines for x, _ in points), default=0.0)
    lines = [(row, [*points, (last, points[-1][1])] if points and row.fitted else points) for row, points in lines]
    return _losses(comparison, f"Held-out loss by seconds{of_first(rows) or ' of training'}", "seconds", lines)


def _losses(
    comparison: Comparison, title: str, label: str, lines: Sequence[tuple[Row, list[tuple[float, dict[str, float]]]]]
) -> list[Chart]:
    """Curves of the loss by something, above the best possible where that is one of the same unit."""
    best = comparison.optimum if comparison.protocol.metric == "loss" else None
    held = [
        Series(row.label, [(x, point["valid_loss"]) for x, point in points if x > 0 and math.isfinite(x)])
        for row, points in lines
    ]
    held = [one for one in held if one.points]
    if not held:
        return []
    x = Axis(label, log=True)
    if best is not None:
        far = [replace(one, points=[(a, max(NEAREST, b - best)) for a, b in one.points]) for one in held]
        return [Chart(title, far, x, Axis("nats above the best possible", log=True))]
    highest = TELLING * max(one.points[-1][1] for one in held)
    kept = [replace(one, points=[point for point in one.points if point[1] <= highest]) for one in held]
    return [Chart(title, kept, x, Axis("nats by tokens of its own" if comparison.protocol.per_byte else "nats"))]


def _recalls(comparison: Comparison) -> list[Chart]:
    """What is recalled against the bytes that are carried, with the least that could hold it."""
    points = [
        Series(row.label, [(carried, sum(shares.values()) / len(shares))])
        for row in _shown(comparison)
        if (carried := mean(row, "state_bytes")) and (shares := mean_slices(row).get(RECALL))
    ]
    if not points:
        return []
    if bits := comparison.facts.get("recall_bits"):
        points.append(Series("information floor", [(bits / 8, 1.0)]))
    axes = Axis("bytes", log=True), Axis("share right, mean over distances", low=0.0, high=1.0)
    return [Chart("Facts recalled and bytes carried", points, *axes, joined=False)]


def _reliability(comparison: Comparison) -> list[Chart]:
    """How often answers of each confidence are right, where models tell the chance of a class."""
    lines = [
        Series(row.label, [(sure, right) for sure, right, count in pooled_reliability(row) if count >= ENOUGH])
        for row in _shown(comparison)
    ]
    lines = [one for one in lines if one.points]
    if not lines:
        return []
    across = Axis(f"confidence, by {ENOUGH} answers or more", low=0.0, high=1.0)
    axes = across, Axis("share right", low=0.0, high=1.0)
    return [Chart("Are chances true?", [Series("as often as said", [(0.0, 0.0), (1.0, 1.0)]), *lines], *axes)]


def _tradeoffs(comparison: Comparison) -> list[Chart]:
    """Quality against what use and training cost, where that differs."""
    rows, protocol = _shown(comparison), comparison.protocol
    unit = rows[0].runs[0]["speed_unit"] if rows else ""
    asked = [("speed", "Quality and speed of use", unit)]
    asked += [] if _recalls(comparison) else [("state_bytes", "Quality and bytes carried", "bytes")]
    asked += [("peak_memory", "Quality and memory of training", "bytes, the whole process")]
    if parse(protocol.budget).kind != "seconds":
        asked.insert(1, ("seconds", "Quality and training time", "seconds"))
    found = []
    for key, title, label in asked:
        points = [_quality(row.label, cost, comparison) for row in rows if (cost := mean(row, key))]
        points = [one for one in points if math.isfinite(one.points[0][1])]
        across: list[float] = [a for one in points for a, _ in one.points]
        if len(points) > 1 and max(across) >= APART * min(across):
            far = protocol.metric == "loss" and comparison.optimum is not None
            up = Axis("test nats above the best possible", log=True) if far else Axis(f"test {protocol.metric}")
            found.append(Chart(title, points, Axis(label, log=True), up, joined=False))
    return found


def _quality(label: str, cost: float, comparison: Comparison) -> Series:
    score = comparison.score(label)
    if comparison.protocol.metric == "loss" and comparison.optimum is not None:
        score = max(NEAREST, score - comparison.optimum)
    return Series(label, [(cost, score)])


def scaling_charts(comparison: Comparison) -> list[str]:
    """Loss by size and by operations, where each model was trained at several sizes."""
    found = laws(comparison)
    drawn = []
    for by in ("parameters", "operations"):
        series = [Series(name, one[by]["points"]) for name, one in found.items() if one[by]["points"]]
        if series:
            drawn.append(Chart(f"Test loss by {by}", series, Axis(by, log=True), Axis("loss", log=True)))
    rows = [
        Row(name, comparison.row(labels[0]).model, 1)
        for name, labels in families([row.label for row in comparison.rows]).items()
    ]
    return [chart.html(styles_of(rows)) for chart in drawn]
