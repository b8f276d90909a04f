"""A report in a notebook: its scores, and those by length, class or category below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.charts.notebook import cell_table, told

if TYPE_CHECKING:
    from regard.tasks.verbs import Report


def as_html(report: Report) -> str:
    """Tables, every word escaped; those that are long are folded."""
    columns = ("score", "value", "change") if report.change else ("score", "value")
    rows = [[name, report.scores[name], report.change.get(name, "")][: len(columns)] for name in report.brief]
    parts = [cell_table(columns, rows)]
    tables = {name: list(some) for name, some in report.tables.items() if some}
    tables |= {f"{name} by distance": [values] for name, values in report.by_distance.items() if values}
    for name, some in tables.items():
        names = list(dict.fromkeys(key for row in some for key in row))
        table = cell_table(names, [[row.get(key, "") for key in names] for row in some])
        parts.append(f"<details><summary>{told(name.replace('_', ' '))}</summary>{table}</details>")
    return "".join(parts)
