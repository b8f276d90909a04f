"""A view in a notebook.

A view with controls becomes a widget where anywidget is installed, and asks itself again when one is changed. HTML goes
with it in any case: a frame of its own that needs neither a kernel nor a network, for exports and for other programs
that open the notebook. (An export that stores the state of widgets shows the widget instead, and fetches its frame from
the network; nbconvert does so after --execute unless ExecutePreprocessor.store_widget_state is off.)
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.explain.render.file import plain, style, to_html, widget_module

if TYPE_CHECKING:
    from regard.explain.view import View

HEIGHTS = {"note": 90, "numbers": 320, "heat": 720, "links": 320, "bars": 320, "curves": 430, "listing": 380}
HEIGHTS |= {"flow": 900, "thumbnails": 720, "overlay": 640}
ABOVE, TALLEST = 160, 900


def bundle(view: View) -> dict[str, Any]:
    """What a notebook may show, by its type."""
    shown: dict[str, Any] = {"text/plain": plain(view), "text/html": frame(view)}
    if view.remake is None or importlib.util.find_spec("anywidget") is None:
        return shown
    made = widget(view)._repr_mimebundle_()
    return (made[0] if isinstance(made, tuple) else made or {}) | shown


def frame(view: View) -> str:
    """HTML that can stand within another page."""
    heights = [HEIGHTS[panel.kind] for panel in view.panels]
    needed = ABOVE + (max(heights, default=0) if view.name == "steps" else sum(heights))
    return (
        f'<iframe sandbox="allow-scripts" title="{escape(view.title)}" srcdoc="{escape(to_html(view))}" '
        f'style="width:100%;height:{min(TALLEST, needed)}px;border:0"></iframe>'
    )


def widget(view: View) -> Any:
    """A widget of anywidget: `view` is what it shows, `asked` the values of controls that the reader chose."""
    shown = _class()(view=view.to_page())
    now = view

    def answer(change: Any) -> None:
        nonlocal now
        if now.remake is None:
            return
        try:
            now = now.remake(change["new"]["values"])
            shown.view, shown.failure = now.to_page(), ""
        except RegardError as error:
            shown.failure = str(error)

    shown.observe(answer, "asked")
    return shown


@cache
def _class() -> Any:
    anywidget, traitlets = importlib.import_module("anywidget"), importlib.import_module("traitlets")

    class ViewWidget(anywidget.AnyWidget):
        """Panels and controls of a view."""

        _esm = widget_module()
        _css = style()
        view = traitlets.Dict().tag(sync=True)
        asked = traitlets.Dict().tag(sync=True)
        failure = traitlets.Unicode("").tag(sync=True)

    return ViewWidget
