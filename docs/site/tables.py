"""Tables of a page, each in a box of its own that scrolls where the table is wider than the page."""

from __future__ import annotations

import re

TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
EMPTY = re.compile(r"<th([^>]*)></th>")  # a corner that says nothing heads nothing
CELL = re.compile(r"<td([^>]*)>(.*?)</td>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
FEW, MANY = 3, 7
LONG = 60  # letters of a cell that is not to be a word wide


def boxed(html: str) -> str:
    """The page with its tables in boxes. One of many columns keeps their width, one of few fits a phone."""

    def box(match: re.Match[str]) -> str:
        columns = len(re.findall(r"<th[ >]", match[0].partition("</tr>")[0]))
        # A class of its own, so that the theme's script does not box it again.
        table = match[0].replace("<table>", '<table class="data">', 1)
        table = EMPTY.sub(r"<td\1></td>", table)
        table = CELL.sub(_told, table)
        size = " few" if columns <= FEW else " many" if columns >= MANY else ""
        return f'<div class="wide{size}">{table}</div>'

    return TABLE.sub(box, html)


def _told(match: re.Match[str]) -> str:
    """A cell that says whether it is long."""
    return match[0] if len(TAG.sub("", match[2])) < LONG else f'<td class="long"{match[1]}>{match[2]}</td>'
