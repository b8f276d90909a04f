"""report.json, report.html and report.md of a comparison. The page is one file, without a network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from regard.storage import disk
from regard.studies.identity import versions
from regard.studies.notes import notes
from regard.studies.report_page import as_html
from regard.studies.standing import Standing
from regard.studies.summary import contrasts, finding, laws, ranking, recalled
from regard.terminal.table import finite

if TYPE_CHECKING:
    from regard.studies.comparison import Comparison
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
    recall = recalled(comparison)
    return "\n".join([head, line, *body, "", finding(comparison), *([recall] if recall else []), "", told, ""])
