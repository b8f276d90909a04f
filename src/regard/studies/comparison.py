"""Comparison: what a comparison came to, just now or as its folder says."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from regard.errors import CheckpointError
from regard.storage.manifest import read_json
from regard.studies.ledger import KEPT, REPORT
from regard.studies.protocol import Protocol
from regard.studies.row import Row, finished, trainings
from regard.studies.standing import Standing
from regard.studies.verdict import Contestant, Verdict, judged
from regard.tasks import task_named

LARGEST = 1 << 28  # bytes of a report


@dataclass(frozen=True, repr=False)
class Comparison:
    """What a comparison came to: its protocol, a row for each model, and the ranking of those that finished.

    optimum   the best possible score of a world, where it is known.
    left_out  models of an earlier go in the same folder that were not named this time.
    """

    protocol: Protocol
    rows: tuple[Row, ...]
    out: Path
    facts: Mapping[str, Any] = field(default_factory=dict)
    optimum: float | None = None
    stopped: bool = False
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Read while the folder is as the rows say: another go at the comparison may change it.
        _ = self.verdict

    @cached_property
    def verdict(self) -> Verdict:
        """The ranking and what it bears; a model that was stopped has not had its budget and is left out."""
        by_time = task_named(self.protocol.task).by_time
        whole = [row for row in finished(self.rows) if not row.stopped and row.is_finite]
        scores = trainings(whole, by_time)
        # Models that read in other tokens may have read further: what all of them have read is compared.
        common = min((len(each) for found in scores.values() for each in found), default=0)
        contestants = [
            Contestant(row.label, [each.first(common) for each in scores[row.label]], fitted=not row.parameters)
            for row in whole
        ]
        return judged(contestants, self.protocol.lower_is_better)

    @property
    def order(self) -> list[Standing]:
        """Best first."""
        return list(self.verdict.order)

    @property
    def failed(self) -> list[Row]:
        """The models of which there is nothing but a reason."""
        return [row for row in self.rows if row.failed]

    def row(self, label: str) -> Row:
        """What was measured of one model."""
        return next(row for row in self.rows if row.label == label)

    def score(self, label: str) -> float:
        """Of all trainings of a model, as it is ranked; of one that is not ranked their mean."""
        ranked = next((one.mean for one in self.order if one.label == label), None)
        runs = self.row(label).runs
        return sum(run["score"] for run in runs) / len(runs) if ranked is None else ranked

    def show(self, stream: TextIO | None = None, *, brief: bool = False) -> None:
        """The table and the sentences, for people; brief: the ranking and what it says alone."""
        from regard.studies.summary import show

        show(self, stream or sys.stdout, brief=brief)

    def __repr__(self) -> str:
        standing = ", ".join(f"{one.label} {one.mean:.4g}" for one in self.order)
        return f"Comparison({self.protocol.data!r}, by {self.protocol.metric}: {standing or 'none finished'})"

    def _repr_html_(self) -> str:
        """The page, in a notebook."""
        from regard.charts.page import framed
        from regard.studies.report_page import as_html, title

        return framed(title(self), as_html(self))


def is_comparison(path: Path) -> bool:
    """Whether a folder is one of a comparison."""
    return (path / KEPT).is_file() or (path / REPORT).is_file()


def read_report(path: Path) -> dict[str, Any]:
    """What the report in a folder of a comparison says."""
    if not os.path.lexists(path / REPORT):
        raise CheckpointError(f"{path}: has no report yet; the command that began it goes on and writes one")
    told = read_json(path / REPORT, LARGEST)
    if not isinstance(told, dict):
        raise CheckpointError(f"{path / REPORT}: expected an object; compare again to write it anew")
    return told


def from_report(told: Mapping[str, Any], path: Path) -> Comparison:
    """The comparison of a report; its runs lie beside it, wherever the folder is now."""
    known = {field.name for field in fields(Protocol)}
    # A protocol of an earlier regard said more: of rates, which are now sought for.
    protocol = Protocol(**{key: value for key, value in told["protocol"].items() if key in known})
    rows = [Row(**row | {"runs": [_run(run, path) for run in row["runs"]]}) for row in told["rows"]]
    left_out = tuple(map(str, told.get("left_out", ())))
    return Comparison(protocol, tuple(rows), path, told["data"], told["optimum"], told["stopped"], left_out)


def reported_before(path: Path) -> list[str]:
    """The models that the report in a folder tells of, those that it had left out among them."""
    try:
        told = read_report(path)
        return [str(row["label"]) for row in told["rows"]] + list(map(str, told.get("left_out", ())))
    except (CheckpointError, KeyError, TypeError):
        return []


def _run(told: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What was measured of a run; JSON has no score that is not finite."""
    score = math.nan if told["score"] is None else told["score"]
    return dict(told) | {"score": score, "path": str(path / Path(told["path"]).name)}
