"""Answer and Report: what a model says to one input, and what it scores on many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a model says to one input: the line that is printed, and more for a program."""

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, **self.details}


@dataclass(frozen=True)
class Report:
    """Scores by plain names.

    tables       of scores by length, class or category; a row is a mapping.
    by_distance  of a score, such as how often a fact was recalled, its value by how far back was to be looked.
    """

    scores: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    by_distance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tables = {name: [dict(row) for row in rows] for name, rows in self.tables.items()}
        return {**self.scores, **tables, **{name: dict(values) for name, values in self.by_distance.items()}}
