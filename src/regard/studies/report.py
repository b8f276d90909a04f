"""report.json, report.html and report.md of a comparison. The page is one file: no script, no network."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from regard.charts.chart import Series, bar_chart, line_chart, point_chart
from regard.charts.page import html_table, page
from regard.charts.plot import Axis
from regard.run.run import load
from regard.storage import disk
from regard.studies.identity import versions
from regard.studies.notes import notes
from regard.studies.standing import Standing
from regard.studies.summary import commands, contrasts, finding, law_lines, laws, ranking, samples
from regard.terminal.table import finite

if TYPE_CHECKING:
    from regard.studies.comparison import Comparison
    from regard.studies.row import Row
    from regard.studies.verdict import Verdict


def write_reports(comparison: Comparison) -> None:
    """Write the three files into the folder of the comparison."""
    out = comparison.out
    disk.publish(out / "report.json", [json.dumps(finite(as_dict(comparison)), indent=1).encode()])
    disk.publish(out / "report.html", [as_html(comparison).encode()])
    disk.publish(out / "report.md", [as_markdown(comparison).encode()])


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Everything that was measured, in plain keys."""
    order = comparison.order
    return {
        "protocol": comparison.protocol.to_dict(),
        "data": dict(comparison.facts),
        "metric": comparison.protocol.metric,
        "lower_is_better": comparison.protocol.lower_is_better,
        "optimum": comparison.optimum,
        "ranking": [_ranked(one) for one in order],
        "verdict": _verdict(comparison.verdict),
        "finding": finding(comparison),
        "notes": notes(comparison),
        "rows": [row.to_dict() for row in comparison.rows],
        "scaling": laws(comparison),
        "differ": contrasts(comparison),
        "stopped": comparison.stopped,
        "left_out": list(comparison.left_out),
        "failed": {row.label: row.failed for row in comparison.failed},
        "versions": versions(),
    }


def _ranked(one: Standing) -> dict[str, Any]:
    return {
        "model": one.label,
        "mean": one.mean,
        "low": one.low,
        "high": one.high,
        "seeds": one.seeds,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "winner": verdict.winner,
        "ties": list(verdict.ties),
        "p": dict(verdict.p),
        "examples": verdict.examples,
    }


def as_markdown(comparison: Comparison) -> str:
    """The ranking for a README."""
    columns, rows = ranking(comparison)
    head = "| " + " | ".join(name.rstrip("#") for name in columns) + " |"
    line = "| " + " | ".join("---:" if name.endswith("#") else "---" for name in columns) + " |"
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    told = "\n".join(f"- {note}" for note in notes(comparison))
    return "\n".join([head, line, *body, "", finding(comparison), "", told, ""])


def as_html(comparison: Comparison) -> str:
    """The page."""
    columns, rows = ranking(comparison)
    numbers = {place for place, name in enumerate(columns) if name.endswith("#")}
    about = ", ".join(f"{name} {value}" for name, value in comparison.facts.items())
    parts = [
        f'<p class="lead">{escape(finding(comparison))}</p>',
        html_table([name.rstrip("#") for name in columns], rows, numbers),
        *(f"<p>{escape(note)}</p>" for note in notes(comparison)),
        f"<p><small>Data: {escape(about)}.</small></p>",
        f'<div class="charts">{"".join(_charts(comparison))}</div>',
        _scaling(comparison),
        "<h2>What each model says</h2>",
        *(
            f"<details open><summary>{escape(label)}</summary><pre>{escape(text)}</pre></details>"
            for label, text in samples(comparison.rows)
        ),
        _differences(contrasts(comparison)),
        _inside(comparison.rows),
        "<h2>Learning rates</h2>",
        _rates(comparison.rows),
        "<h2>Next</h2>",
        f"<pre>{escape(chr(10).join(line.strip() for line in commands(comparison)[1:]))}</pre>",
        f"<p><small>{escape(', '.join(f'{name} {value}' for name, value in versions().items()))}</small></p>",
    ]
    return page(f"Comparison on {comparison.facts.get('name', comparison.protocol.data)}", "".join(parts))


def _charts(comparison: Comparison) -> list[str]:
    shown = [row for row in comparison.rows if row.runs]
    by = (("seconds", "seconds of training"), ("tokens", "tokens"))
    curves = [*(_curve(shown, key, label, comparison.optimum) for key, label in by), _operations(shown)]
    order, metric = comparison.order, comparison.protocol.metric
    bars, ends = [(one.label, one.mean) for one in order], [one.ends for one in order]
    scores = bar_chart(f"Test {metric}", bars, f"{metric}; lines: 95%", ends, _names(shown))
    return [scores, *[chart for chart in curves if chart], *_slices(shown, comparison), *_tradeoffs(shown, comparison)]


def _names(rows: Sequence[Row]) -> list[str]:
    """In the order that gives every model one colour throughout the page."""
    return [row.label for row in rows]


def _curve(rows: Sequence[Row], key: str, label: str, optimum: float | None) -> str:
    series = [
        Series(row.label, [(point[key], point["valid_loss"]) for point in row.runs[0]["curve"] if point[key] > 0])
        for row in rows
    ]
    series = [one for one in series if one.points]
    if not series:
        return ""
    if optimum is not None and series[0].points:
        last = max(x for one in series for x, _ in one.points)
        first = min(x for one in series for x, _ in one.points)
        series.append(Series("best possible", [(first, optimum), (last, optimum)]))
    return line_chart(f"Held-out loss by {label}", series, Axis(label, log=True), Axis("nats"), _names(rows))


def _operations(rows: Sequence[Row]) -> str:
    series = [
        Series(
            row.label,
            [
                (point["tokens"] * row.runs[0]["flops_per_token"], point["valid_loss"])
                for point in row.runs[0]["curve"]
                if point["tokens"] > 0
            ],
        )
        for row in rows
        if row.runs[0].get("flops_per_token")
    ]
    series = [one for one in series if one.points]
    if not series:
        return ""
    return line_chart("Held-out loss by operations", series, Axis("operations", log=True), Axis("nats"), _names(rows))


def _slices(rows: Sequence[Row], comparison: Comparison) -> list[str]:
    """The score by length, distance or class: a line for each model over the names of the slices."""
    names = dict.fromkeys(name for row in rows for name in row.runs[0]["slices"])
    charts = []
    for name in names:
        labels = list(dict.fromkeys(one for row in rows for one in row.runs[0]["slices"].get(name, {})))
        if len(labels) < 2:
            continue
        series = [
            Series(
                row.label,
                [(float(labels.index(key)), value) for key, value in row.runs[0]["slices"].get(name, {}).items()],
            )
            for row in rows
        ]
        metric = "share right" if name.startswith("recall") else comparison.protocol.metric
        axis = Axis(name.partition("by ")[2] or "slice", names=tuple(labels))
        charts.append(line_chart(name.capitalize(), series, axis, Axis(metric), _names(rows)))
    return charts


def _tradeoffs(rows: Sequence[Row], comparison: Comparison) -> list[str]:
    """Quality against the cost of use and the state that is carried."""
    metric = comparison.protocol.metric

    def points(key: str) -> list[Series]:
        return [
            Series(row.label, [(float(row.runs[0][key]), row.runs[0]["score"])])
            for row in rows
            if row.runs[0].get(key) and math.isfinite(row.runs[0]["score"])
        ]

    unit = rows[0].runs[0]["speed_unit"] if rows else ""
    charts = []
    for key, title, label in (
        ("speed", "Quality and speed of use", unit),
        ("seconds", "Quality and training time", "seconds"),
        ("peak_memory", "Quality and memory of training", "bytes, the whole process"),
        ("state_bytes", "Quality and state carried", "bytes"),
    ):
        found = points(key)
        if len(found) > 1:
            charts.append(point_chart(title, found, Axis(label, log=True), Axis(f"test {metric}"), _names(rows)))
    recalls = [
        Series(row.label, [(float(run["state_bytes"]), sum(shares.values()) / len(shares))])
        for row in rows
        for run in row.runs[:1]
        if run["state_bytes"] and (shares := run["slices"].get("recall by distance"))
    ]
    if recalls:
        title = "Facts recalled and state carried"
        if bits := comparison.facts.get("recall_bits"):
            recalls.append(Series("information floor", [(bits / 8, 1.0)]))
        charts.append(point_chart(title, recalls, Axis("bytes", log=True), Axis("share right"), _names(rows)))
    return charts


def _scaling(comparison: Comparison) -> str:
    """Loss by size and by operations, with the fitted law of each model."""
    found = laws(comparison)
    if not found:
        return ""
    charts = []
    for by, log_label in (("parameters", "parameters"), ("operations", "operations")):
        series = [Series(name, one[by]["points"]) for name, one in found.items() if one[by]["points"]]
        if series:
            title = f"Test loss by {by}"
            charts.append(line_chart(title, series, Axis(log_label, log=True), Axis("loss", log=True), list(found)))
    told = "".join(f"<p>{escape(line)}</p>" for line in law_lines(comparison))
    return f'<h2>Size</h2>{told}<div class="charts">{"".join(charts)}</div>'


def _inside(rows: Sequence[Row]) -> str:
    """Attention, alignments, gates, states or counts of each model, over the same words."""
    found = pictures(rows)
    if not found:
        return ""
    shown = (f"<details><summary>{escape(label)}</summary>{picture}</details>" for label, picture in found)
    return (
        "<h2>Inside</h2><p>Each model over the same words, or over the first example that was held out.</p>"
        + "".join(shown)
    )


def _rates(rows: Sequence[Row]) -> str:
    cells = [[row.label, *(_rate(row, lr, score) for lr, score in row.rates)] for row in rows if row.rates]
    if not cells:
        return "<p>None were searched.</p>"
    width = max(map(len, cells))
    columns = ["model", *(f"rate {number}" for number in range(1, width))]
    told = "Held-out loss of a short training at each rate, the lowest first. The best was taken."
    edge = " * It is the lowest or highest tried." if any(row.on_edge for row in rows) else ""
    return f"<p>{told}{edge}</p>" + html_table(columns, [row + [""] * (width - len(row)) for row in cells])


def _rate(row: Row, lr: float, score: float | None) -> str:
    """A rate and how it did; the one that was taken has a star where a better one may lie further out."""
    taken = f" taken{'*' if row.on_edge else ''}" if lr == row.lr else ""
    return f"{lr:g}: {'diverged' if score is None else f'{score:.4g}'}{taken}"


def _differences(found: Sequence[dict[str, Any]]) -> str:
    if not found:
        return ""
    parts = []
    for one in found:
        rows = "".join(f"<tr><td>{escape(label)}</td><td>{escape(text)}</td></tr>" for label, text in one.items())
        parts.append(f"<table>{rows}</table><br>")
    return f"<h2>Where some are right and others wrong</h2>{''.join(parts)}"


def pictures(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """A label and a drawing for every model of which there is something to see: attention, gates, states, counts."""
    found = []
    for row in rows:
        if not row.runs or "given" not in row.runs[0]:
            continue
        try:
            picture = load(row.runs[0]["path"], device="cpu").explain(row.runs[0]["given"]).to_svg()
        except Exception as error:
            # A picture is an extra: hours of training must not be lost to one, whatever happened to it.
            picture = f"<p>no picture: {escape(str(error) or type(error).__name__)}</p>"
        found.append((row.label, picture))
    return found
