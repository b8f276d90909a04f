"""The page of a comparison: the answer and a picture, the ranking, charts, telling examples, and how it was done."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from regard.charts.page import html_table, numbers, page
from regard.run.run import load
from regard.studies.identity import versions
from regard.studies.means import mean, of_first
from regard.studies.notes import notes
from regard.studies.palette import styles_of
from regard.studies.report_charts import (
    charts,
    first_chart,
    further_charts,
    scaling_charts,
)
from regard.studies.summary import commands, contrasts, finding, law_lines, ranking, recalled, samples

if TYPE_CHECKING:
    from regard.studies.comparison import Comparison
    from regard.studies.row import Row

SHARE = re.compile(r"\d+%")
MEASURED = ("step", "seconds", "speed", "state_bytes", "peak_memory")


def title(comparison: Comparison) -> str:
    return f"Comparison on {comparison.facts.get('name', comparison.protocol.data)}"


def as_html(comparison: Comparison) -> str:
    """The page."""
    answer, _, more = finding(comparison).partition(". ")
    palette = {label: style.colour for label, style in styles_of(comparison.rows).items()}
    further = further_charts(comparison)
    parts = [
        f'<p class="answer">{escape(answer.rstrip("."))}.</p>',
        *(f'<p class="lead">{escape(told)}</p>' for told in (recalled(comparison), more) if told),
        first_chart(comparison),
        "<h2>Ranking</h2>",
        _ranking(comparison, palette),
        "<h2>What was learnt, and what it costs</h2>",
        f'<div class="charts">{"".join(charts(comparison))}</div>',
        f"<details><summary>By tokens and by operations</summary>{_grid(further)}</details>" if further else "",
        _scaling(comparison),
        _differences(contrasts(comparison), palette, of_first(comparison.rows)),
        f"<h2>What each model says{of_first(comparison.rows)}</h2>",
        *(
            f"<details><summary>{_dot(label, palette)}{escape(label)}</summary><pre>{escape(text)}</pre></details>"
            for label, text in samples(comparison.rows)
        ),
        _inside(comparison.rows, palette),
        _method(comparison, palette),
        "<h2>Next</h2>",
        f"<pre>{escape(chr(10).join(line.strip() for line in commands(comparison)[1:]))}</pre>",
        f"<p><small>{escape(', '.join(f'{name} {value}' for name, value in versions().items()))}</small></p>",
    ]
    return page(title(comparison), "".join(parts))


def _grid(drawn: Sequence[str]) -> str:
    return f'<div class="charts">{"".join(drawn)}</div>'


def _dot(label: str, palette: Mapping[str, str]) -> str:
    return f'<span class="dot" style="background:{palette[label]}"></span>' if label in palette else ""


def _ranking(comparison: Comparison, palette: Mapping[str, str]) -> str:
    columns, rows = ranking(comparison)
    right = {place for place, name in enumerate(columns) if name.endswith("#")}
    order = {one.label: one for one in comparison.order}
    told = []
    for row in comparison.rows:
        one = order.get(row.label)
        ends = [one.mean, one.low, one.high] if one is not None else [None] * 3
        told.append([row.label, *ends, row.parameters or None, row.lr, *(mean(row, key) for key in MEASURED)])
    names = ["model", comparison.protocol.metric, "low", "high", "parameters", "rate", *MEASURED]
    return html_table([name.rstrip("#") for name in columns], rows, right, palette) + numbers(names, told)


def _method(comparison: Comparison, palette: Mapping[str, str]) -> str:
    """What was equal and what was not, the data, and the rates that were tried."""
    about = ", ".join(f"{name} {value}" for name, value in comparison.facts.items())
    told = "".join(f"<li>{escape(note)}</li>" for note in notes(comparison))
    return (
        f"<h2>How it was done</h2><ul>{told}</ul><p><small>Data: {escape(about)}.</small></p>"
        f"<h2>Learning rates</h2>{_rates(comparison.rows, palette)}"
    )


def _scaling(comparison: Comparison) -> str:
    """Loss by size and by operations, with the fitted law of each model."""
    drawn = scaling_charts(comparison)
    told = "".join(f"<p>{escape(line)}</p>" for line in law_lines(comparison))
    return f"<h2>Size</h2>{told}{_grid(drawn)}" if drawn else ""


def _inside(rows: Sequence[Row], palette: Mapping[str, str]) -> str:
    """Attention, alignments, gates, states or counts of each model, over the same words."""
    found = pictures(rows)
    if not found:
        return ""
    shown = (
        f"<details><summary>{_dot(label, palette)}{escape(label)}</summary>"
        f'<div class="inside">{picture}</div></details>'
        for label, picture in found
    )
    about = "Each model over the same words, or over the first example that was held out."
    return f"<h2>Inside{of_first(rows)}</h2><p>{about}</p>{''.join(shown)}"


def _rates(rows: Sequence[Row], palette: Mapping[str, str]) -> str:
    cells = [[row.label, *(_rate(row, lr, score) for lr, score in row.rates)] for row in rows if row.rates]
    if not cells:
        return "<p>None were searched.</p>"
    width = max(map(len, cells))
    columns = ["model", *(f"rate {number}" for number in range(1, width))]
    told = "Held-out loss of a short training at each rate, the lowest first. The best was taken."
    edge = " * It is the lowest or highest tried." if any(row.on_edge for row in rows) else ""
    tried = [[row.label, lr, score, lr == row.lr] for row in rows for lr, score in row.rates]
    table = html_table(columns, [row + [""] * (width - len(row)) for row in cells], frozenset(), palette)
    return f"<p>{told}{edge}</p>{table}{numbers(['model', 'rate', 'held-out loss', 'taken'], tried)}"


def _rate(row: Row, lr: float, score: float | None) -> str:
    """A rate and how it did; the one that was taken has a star where a better one may lie further out."""
    taken = f" taken{'*' if row.on_edge else ''}" if lr == row.lr else ""
    return f"{lr:g}: {'diverged' if score is None else f'{score:.4g}'}{taken}"


def _differences(found: Sequence[dict[str, Any]], palette: Mapping[str, str], of: str) -> str:
    """One table, a row for each example and a column for each model; a share is shaded by how large it is."""
    if not found:
        return ""
    names = list(dict.fromkeys(name for one in found for name in one))
    title, csv = (
        f"<h2>Where some are right and others wrong{of}</h2>",
        numbers(names, [[one.get(name, "") for name in names] for one in found]),
    )
    if "input" in names:
        return f"{title}{_answers(found, palette)}{csv}"
    head = "".join(f"<th>{_dot(name, palette)}{escape(name)}</th>" for name in names)
    rows = "".join(f"<tr>{''.join(_cell(name, one.get(name, '')) for name in names)}</tr>" for one in found)
    return f'{title}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{csv}'


def _answers(found: Sequence[dict[str, Any]], palette: Mapping[str, str]) -> str:
    """A row for each example: its input once, its own answer, and what each model says to it, as many as have room."""

    def said(label: str, text: str) -> str:
        is_right = text.endswith("=")
        return (
            f'<span class="said{" good" if is_right else ""}">{_dot(label, palette)}<small>{escape(label)}</small> '
            f"{escape(text)}</span>"
        )

    rows = "".join(
        f"<tr><td>{escape(one['input'])}</td><td>{escape(one['right'])}</td><td>"
        + " ".join(said(label, text) for label, text in one.items() if label not in ("input", "right"))
        + "</td></tr>"
        for one in found
    )
    head = "<th>input</th><th>right</th><th>what each model says; = where it is right</th>"
    return f'<table class="answers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _cell(name: str, text: str) -> str:
    if SHARE.fullmatch(text):
        return f'<td class="share" style="--share:{int(text[:-1]) / 100:g}">{text}</td>'
    return f"<td{' class=text' if name == 'text' else ''}>{escape(text)}</td>"


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
