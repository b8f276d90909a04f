"""One page with all verdicts: claims, rules, numbers, figures, costs and versions. No script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from regard.charts.page import figure, page
from regard.studies.registry import number_of
from regard.studies.reproduce import Result

MARKS = {"holds": "good", "does not hold": "bad", "not settled": "open", "failed": "bad"}


def report(results: Sequence[Result]) -> str:
    """The page of some results."""
    counts = {outcome: sum(one.outcome == outcome for one in results) for outcome in MARKS}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    rows = "".join(
        f'<tr><td><a href="#{escape(one.study)}">{escape(one.study)}</a></td><td>{escape(one.claim)}</td>'
        f'<td class="{MARKS[one.outcome]}">{one.outcome}</td><td>{escape(one.scale)}</td>'
        f"<td>{one.seconds:.0f} s</td></tr>"
        for one in results
    )
    parts = [
        f"<p>{told or 'Nothing has been run yet'}.</p>",
        f"<table><tr><th>study</th><th>claim</th><th>verdict</th><th>scale</th><th>cost</th></tr>{rows}</table>",
        *map(_section, results),
    ]
    return page("Claims and verdicts", "".join(parts))


def _section(one: Result) -> str:
    about = ", ".join(f"{name} {value}" for name, value in one.versions.items())
    number = number_of(one.study)
    name = f"{one.study} ({number})" if number else one.study
    return (
        f'<section id="{escape(one.study)}"><h2>{escape(name)}: {escape(one.claim)}</h2>'
        f'<p class="{MARKS[one.outcome]}"><b>{one.outcome}</b>: {escape(one.reason)}.</p>'
        f"<p>Rule: {escape(one.rule)}. Source: {escape(one.source)}.</p>{figure(one.figure, one.claim)}"
        f"<p><small>{len(one.seeds)} seeds, {escape(one.scale)}, {one.seconds:.0f} s on {escape(one.device)}; "
        f"{escape(about)}</small></p></section>"
    )
