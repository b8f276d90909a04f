"""Where the two sides of pairs lie: in two files, or in two columns of a table."""

from __future__ import annotations

from pathlib import Path

from regard.data.example import Examples, Pair
from regard.data.pairs import Sides, read_pairs
from regard.data.settings import DataSettings
from regard.data.source import is_pattern
from regard.data.tabular import is_address, is_table


def sides_of(data: str, settings: DataSettings) -> Examples[Pair]:
    """The pairs of two files, named by a comma between them or by data.target, or of a table."""
    source, other = (data, "") if Path(data).exists() else data.partition(",")[::2]
    other, column = other or None, settings.target
    if column is not None and not _is_column(column, settings):
        # The other side of the run's own file is none of another one, which comes in two files itself.
        other, column = (column if data == settings.path else other), None
    sides = Sides(settings.source, None if other else column, settings.reverse)
    return read_pairs(source, other, sides=sides, missing=settings.missing, choices=settings.choices)


def _is_column(target: str, settings: DataSettings) -> bool:
    """Whether the other side is a column of the run's own table, and not a file."""
    if Path(target).expanduser().exists():
        return False
    own = settings.path
    is_there = is_address(own) or Path(own.partition("#")[0]).exists() or is_pattern(own)
    return target.isdecimal() or settings.source is not None or (is_there and is_table(own, settings.choices))
