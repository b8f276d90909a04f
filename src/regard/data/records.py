"""Records: rows by name, a list of mappings for programs and a frame where pandas is installed."""

from __future__ import annotations

import importlib
from html import escape
from typing import TYPE_CHECKING, Any

from regard.errors import UsageError

if TYPE_CHECKING:
    import pandas

SHOWN = 20  # rows in a notebook, half of them from each end


class Records(list[dict[str, Any]]):
    """A list of mappings from the names of columns to values. A row may lack some of them."""

    @property
    def columns(self) -> list[str]:
        """Every name that a row has, in the order in which they come up."""
        return list(dict.fromkeys(name for row in self for name in row))

    def column(self, name: str) -> list[Any]:
        """The values of one column, of the rows that have it."""
        return [row[name] for row in self if name in row]

    def to_frame(self) -> pandas.DataFrame:
        """A frame of pandas, a row for each."""
        try:
            frames: Any = importlib.import_module("pandas")
        except ImportError:
            raise UsageError("a frame needs pandas, which is not installed; pip install 'regard[tables]'") from None
        return frames.DataFrame(list(self), columns=self.columns)

    def __repr__(self) -> str:
        return f"Records({len(self)} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        names = self.columns
        shown = list(self) if len(self) <= SHOWN else [*self[: SHOWN // 2], None, *self[-SHOWN // 2 :]]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{_told(row, name)}</td>' for name in names)}</tr>" for row in shown)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _told(row: dict[str, Any] | None, name: str) -> str:
    """A cell; without a row one that stands for those that are left out."""
    if row is None:
        return "&hellip;"
    value = row.get(name, "")
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
