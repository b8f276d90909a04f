"""Inside: what each model of a comparison looks like from within, on the same piece of the test part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.run import load

if TYPE_CHECKING:
    from regard.studies.race import Row


def pictures(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """A label and a drawing for every model of which there is something to see: attention, gates, states, counts."""
    found = []
    for row in rows:
        if not row.runs or "given" not in row.runs[0]:
            continue
        try:
            view = load(row.runs[0]["path"], device="cpu").explain(row.runs[0]["given"])
        except RegardError:
            # A picture is an extra: a model that has none, or whose folder was moved, keeps its numbers.
            continue
        found.append((row.label, view.to_svg()))
    return found
