"""A view as a file; the end of its name says what it is.

A view as a picture for a slide: SVG, or PNG where Pillow is installed. One drawing, two ways to write it out.

A view as one HTML file: it opens from disk, needs no network, and may not use any.

The policy in its head allows the one script and the one style sheet that it holds, by their hashes, and nothing else.
Words of a view are data in it: a script reads them and puts them in as text.

The page's modules as one script, for a file and a notebook, which load nothing.

Every module becomes a function that is called once and returns what the module exports, in the order in which they
import each other. Modules keep to two forms, so that no parser is needed: `import { a, b } from "./name.js";`, and
`export` before a function, a class or a constant.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.charts.drawing import HEAD, SMALL, TITLE, Drawing
from regard.charts.raster import png
from regard.charts.svg import svg
from regard.errors import UsageError
from regard.explain.overlay import Overlay
from regard.explain.render.shapes.curves import curves
from regard.explain.render.shapes.maps import heat, links
from regard.explain.render.shapes.numbers import bars, listing, note, numbers
from regard.explain.render.shapes.pictures import overlay, thumbnails
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Note, Numbers, Panel, View
from regard.storage import disk
from regard.terminal.label import facts, label

if TYPE_CHECKING:
    from regard.explain.view import View

SUFFIXES = (".svg", ".png", ".html", ".json")
BETWEEN = 28
WEB = files("regard.explain") / "web"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
WIDTH = 100  # columns of what is shown where scripts are turned off


def save(view: View, path: str | Path) -> None:
    """Write a view whole or not at all."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise UsageError(f"{path}: a view is saved as one of {', '.join(SUFFIXES)}; give the file such a name")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent} to write into")
    disk.write_for_person(path, [_bytes(view, kind)])


def _bytes(view: View, kind: str) -> bytes:
    if kind == ".png":
        return view.to_png()
    if kind == ".svg":
        text = view.to_svg()
    elif kind == ".html":
        text = view.to_html()
    else:
        text = json.dumps(view.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8")


def to_svg(view: View) -> str:
    """The text of an SVG file."""
    return svg(_drawing(view))


def to_png(view: View, scale: float = 2) -> bytes:
    """The bytes of a PNG file, 1280 x `scale` pixels wide."""
    return png(_drawing(view), scale)


def _drawing(view: View) -> Drawing:
    drawing = Drawing(title=label(view.title))
    drawing.paragraph(view.title, TITLE)
    about = facts(view.about)
    if about:
        drawing.paragraph(about, SMALL)
    for panel in view.panels:
        drawing.y += BETWEEN if panel.title else BETWEEN / 2
        if panel.title:
            drawing.paragraph(panel.title, HEAD)
            drawing.y += 6
        _draw(panel, drawing)
        if panel.note:
            drawing.paragraph(panel.note, SMALL)
    if view.caveat:
        drawing.y += BETWEEN
        drawing.paragraph(view.caveat, SMALL)
    return drawing


def _draw(panel: Panel, drawing: Drawing) -> None:
    match panel:
        case Note():
            note(panel, drawing)
        case Numbers():
            numbers(panel, drawing)
        case Heat():
            heat(panel, drawing)
        case Links():
            links(panel, drawing)
        case Bars():
            bars(panel, drawing)
        case Curves():
            curves(panel, drawing)
        case Listing():
            listing(panel, drawing)
        case Thumbnails():
            thumbnails(panel, drawing)
        case Overlay():
            overlay(panel, drawing)
        case _:
            raise TypeError(f"no way to draw a panel of kind {panel.kind!r}")


@cache
def style() -> str:
    """The style sheet."""
    return _read("style.css")


@cache
def file_script() -> str:
    """The script of a file: draws the views that the file holds."""
    return started("file")


@cache
def widget_module() -> str:
    """The module of a notebook's widget: exports what draws it."""
    return f"{_modules('widget')}\nexport default {{ render: widget_js.render }};\n"


def started(entry: str) -> str:
    """A script that calls what the module `entry` exports as `start`."""
    return f'(() => {{\n"use strict";\n{_modules(entry)}\n{entry}_js.start();\n}})();\n'


def _modules(entry: str) -> str:
    """The module `entry` and all it imports, each after those it needs."""
    done: dict[str, str] = {}
    _add(entry, done, ())
    joined = "\n".join(done.values())
    if "</script" in joined.lower() or "<!--" in joined:
        raise ValueError(f"{entry}.js: a script in a page cannot hold its own end")
    return joined


def _add(name: str, done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' -> '.join((*above, name))}")
    if name in done:
        return
    source = _read(f"{name}.js")
    for _, needed in IMPORT.findall(source):
        _add(needed, done, (*above, name))
    body = IMPORT.sub(lambda found: f"const {{{found[1]}}} = {found[2]}_js;\n", source)
    exported = EXPORT.findall(body)
    body = EXPORT.sub("", body)
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name}.js: an import or export of another form than those of regard.explain.render.file")
    done[name] = f"const {name}_js = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();"


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def to_html(view: View) -> str:
    """The file of a view."""
    return alone(view.title, ("regard-view", view.to_page()), file_script(), style(), plain(view))


def alone(title: str, data: tuple[str, Any], script: str, styles: str, words: str) -> str:
    """A page that stands alone.

    data   the id of the element that holds it, and what the script reads there.
    words  what is shown where scripts are turned off.
    """
    place, value = data
    sources = {"script-src": _hash(script), "style-src": _hash(styles), "base-uri": "'none'", "form-action": "'none'"}
    policy = "; ".join(["default-src 'none'", *(f"{name} {source}" for name, source in sources.items())])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{styles}</style></head>\n"
        f'<body class="regard"><main id="regard"><noscript><pre class="wide">{_text(words)}</pre></noscript>'
        f'</main>\n<script type="application/json" id="{place}">{as_data(value)}</script>\n'
        f"<script>{script}</script></body></html>\n"
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
