"""Inside: what each model of a comparison looks like from within, on the same piece of the test part."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from regard.run.run import load

if TYPE_CHECKING:
    from regard.studies.race import Row


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
