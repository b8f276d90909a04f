"""A view as one HTML file: it opens from disk, needs no network, and may not use any.

The policy in its head allows the one script and the one style sheet that it holds, by their hashes, and nothing else.
Words of a view are data in it: a script reads them and puts them in as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from regard.explain.render.script import file_script, style

if TYPE_CHECKING:
    from regard.explain.view import View

WIDTH = 100  # columns of what is shown where scripts are turned off


def to_html(view: View) -> str:
    """The file of one view."""
    return _file([view], view.title, heading="")


def several(views: Sequence[View], title: str) -> str:
    """The file of several views under a title."""
    return _file(views, title, heading=title)


def as_data(value: Any) -> str:
    """JSON that can stand in a script element: in ASCII, and without the sign that could end it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


def plain(view: View) -> str:
    """What a terminal would show."""
    from regard.explain.render.terminal import lines

    return "\n".join(lines(view, width=WIDTH, colour=False, unicode=True))


def _file(views: Sequence[View], title: str, heading: str) -> str:
    data = as_data({"title": heading, "views": [view.to_page() for view in views]})
    policy = (
        f"default-src 'none'; script-src {_hash(file_script())}; style-src {_hash(style())}; "
        "base-uri 'none'; form-action 'none'"
    )
    text = "\n\n".join(plain(view) for view in views)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{style()}</style></head>\n"
        f'<body class="regard"><main id="regard"><noscript><pre class="wide">{_text(text)}</pre></noscript></main>\n'
        f'<script type="application/json" id="regard-views">{data}</script>\n'
        f"<script>{file_script()}</script></body></html>\n"
    )


def _text(text: str) -> str:
    # Half of a surrogate pair, which a command line may hold, cannot be written in UTF-8.
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
