"""HTML for the cell of a notebook: plain tables, without scripts or styles of their own page, every word escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

LEFT, RIGHT = ' style="text-align:left"', ' style="text-align:right"'


def cell_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table of words and numbers; numbers stand at the right."""
    head = "".join(f"<th{LEFT}>{escape(name)}</th>" for name in columns)
    lines = ("".join(f"<td{_side(cell)}>{told(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    above = f"<caption{LEFT}>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}{f'<thead><tr>{head}</tr></thead>' if columns else ''}<tbody>{body}</tbody></table>"


def facts_table(facts: Mapping[str, Any], caption: str = "") -> str:
    """Names and what they are, a row each."""
    return cell_table((), facts.items(), caption)


def told(value: Any) -> str:
    """A value in few letters, escaped.

    >>> told(0.123456789), told("<b>"), told(1234)
    ('0.1235', '&lt;b&gt;', '1,234')
    """
    if isinstance(value, bool) or value is None:
        return escape(str(value))
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def shaded(words: Iterable[tuple[str, float, str]]) -> str:
    """Words in a row, each on a ground whose depth is a share from 0 to 1, with what is said under the pointer."""
    parts = []
    for word, share, note in words:
        ground = f"background:rgba(213,94,0,{0.55 * min(1.0, max(0.0, share)):.3f})"
        look = f"display:inline-block;white-space:pre;padding:0 2px;margin:1px;{ground}"
        parts.append(f'<span style="{look}" title="{escape(note)}">{escape(word)}</span>')
    return f"<div>{''.join(parts)}</div>"


def _side(value: Any) -> str:
    return RIGHT if isinstance(value, int | float) and not isinstance(value, bool) else LEFT
