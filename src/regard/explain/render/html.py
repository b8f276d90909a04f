"""A view as one HTML file: it opens from disk, needs no network, and may not use any.

The policy in its head allows the one script and the one style sheet that it holds, by their hashes, and nothing else.
Words of a view are data in it: a script reads them and puts them in as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import TYPE_CHECKING, Any

from regard.explain.render.script import file_script, style

if TYPE_CHECKING:
    from regard.explain.view import View

WIDTH = 100  # columns of what is shown where scripts are turned off


def to_html(view: View) -> str:
    """The file of a view."""
    policy = (
        f"default-src 'none'; script-src {_hash(file_script())}; style-src {_hash(style())}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(view.title)}</title>\n<style>{style()}</style></head>\n"
        f'<body class="regard"><main id="regard"><noscript><pre class="wide">{_text(plain(view))}</pre></noscript>'
        f'</main>\n<script type="application/json" id="regard-view">{as_data(view.to_page())}</script>\n'
        f"<script>{file_script()}</script></body></html>\n"
    )


def as_data(value: Any) -> str:
    """JSON that can stand in a script element: in ASCII, and without the sign that could end it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


def plain(view: View) -> str:
    """What a terminal would show."""
    from regard.explain.render.terminal import lines

    return "\n".join(lines(view, width=WIDTH, colour=False, unicode=True))


def _text(text: str) -> str:
    # Half of a surrogate pair, which a command line may hold, cannot be written in UTF-8.
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
