"""View: what is shown of a model, as plain data: a title and panels of a few kinds.

A view is made once and shown anywhere: in a terminal, as an HTML file, in a notebook, on the page of `regard lab`, as
SVG or PNG. Renderers only draw; every number they show is in the view.

    Note      a paragraph, or an equation
    Numbers   a matrix with every number written out
    Heat      a matrix of weights as shades
    Links     two rows of tokens and how much each one of the lower looks at each of the upper
    Bars      a value for each name
    Curves    lines over an axis, and bands around them
    Listing   a table of texts and numbers
    Flow      the numbers of an input on their way through a model (regard.explain.flow)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.charts.formula import mathml
from regard.errors import UsageError
from regard.explain.packed import packed
from regard.explain.plain import plain_values
from regard.terminal.table import finite


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Base of all panels.

    title  what it is.
    note   a sentence below it, or nothing.
    key    its name for programs, unique within a view; panels of no interest to a program have none.
    """

    kind: ClassVar[str]
    title: str = ""
    note: str = ""
    key: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, every number in full; what may be left out is, where it is empty."""
        told: dict[str, Any] = {"kind": self.kind}
        for part in fields(self):
            value = plain_values(getattr(self, part.name))
            if part.default is MISSING or value not in ("", [], {}, None):
                told[part.name] = value
        return told

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        """The same for a page, where large matrices are packed; maps of more than `most` weights as smaller ones."""
        return self.to_dict()


@dataclass(frozen=True, kw_only=True)
class Note(Panel):
    """Words. style: "text", "equation" (set in a fixed width), "answer" (of a question the reader may ask).

    tex  the same equation in TeX, which a page sets; elsewhere it stays as plain text.
    """

    kind: ClassVar[str] = "note"
    text: str = ""
    style: str = "text"
    tex: str = ""

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        return _with_math(self, self.tex)


@dataclass(frozen=True, kw_only=True)
class Numbers(Panel):
    """A matrix (R, C) to be read number by number, in four digits.

    equation      what was calculated, in plain text, such as "S = Q K^T"; tex: the same in TeX, which a page sets.
    rows, columns their labels, or none.
    marked        cells (row, column) worth a look, from 0 on.
    A masked value is NaN and is shown as a dot.
    """

    kind: ClassVar[str] = "numbers"
    values: np.ndarray
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    equation: str = ""
    marked: Sequence[tuple[int, int]] = ()
    tex: str = ""

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        return _with_math(self, self.tex)


@dataclass(frozen=True, kw_only=True)
class Heat(Panel):
    """Weights (T, S) as shades from `low` to `high`; darker is more. Where low < 0, zero is in the middle.

    rows, columns  labels of both sides; row_name, column_name say what the sides are.
    scale          what a shade means, such as "weight".
    """

    kind: ClassVar[str] = "heat"
    weights: np.ndarray
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    row_name: str = ""
    column_name: str = ""
    low: float = 0.0
    high: float = 1.0
    scale: str = "weight"

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        return _with_packed(self, self.weights, most)


@dataclass(frozen=True, kw_only=True)
class Links(Panel):
    """Weights (T, S) from each of `lower` to each of `upper`; a row sums to 1.

    pairs  (i, j) that count as aligned: lower i with upper j, from 0 on.
    """

    kind: ClassVar[str] = "links"
    weights: np.ndarray
    upper: Sequence[str]
    lower: Sequence[str]
    upper_name: str = ""
    lower_name: str = ""
    pairs: Sequence[tuple[int, int]] = ()

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        return _with_packed(self, self.weights)


@dataclass(frozen=True, kw_only=True)
class Bars(Panel):
    """A value for each name, from zero on, negative ones to the left. unit: of the values."""

    kind: ClassVar[str] = "bars"
    names: Sequence[str]
    values: Sequence[float]
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Curves(Panel):
    """A line for each name through its points (x, y).

    bands    areas by name, each through points (x, low, high); wider ones first. around: the line they are about.
    x_names  of the values 0, 1, 2 and so on of x, where they are no numbers. x_ticks: where which words are written.
    """

    kind: ClassVar[str] = "curves"
    lines: dict[str, Sequence[tuple[float, float]]]
    x: str = ""
    y: str = ""
    x_log: bool = False
    y_log: bool = False
    bands: dict[str, Sequence[tuple[float, float, float]]] = field(default_factory=dict)
    around: str = ""
    x_names: Sequence[str] = ()
    x_ticks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, kw_only=True)
class Listing(Panel):
    """A table. A column whose name ends in `#` holds numbers and stands at the right."""

    kind: ClassVar[str] = "listing"
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]


@dataclass(frozen=True, kw_only=True)
class Control:
    """Something that can be asked for otherwise: a layer, a head, a temperature.

    kind     "choice" of `values`, "range" from low to high by steps, "toggle", or "text".
    value    what this view was made with.
    """

    name: str
    label: str
    kind: str
    value: Any
    values: Sequence[Any] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.1


@dataclass(frozen=True)
class View:
    """Panels under a title.

    about     what it is of, in plain keys: run, text, layer, head.
    caveat    what the picture does not prove.
    controls  what can be asked for otherwise where somebody can answer: on the page of `regard lab` and in a notebook.
    name      of the look that it is, such as "attention"; panels of "steps" are looked at one after the other.
    remake    the same view with other values of its controls.
    """

    title: str
    panels: Sequence[Panel]
    about: dict[str, Any] = field(default_factory=dict)
    caveat: str = ""
    controls: Sequence[Control] = ()
    name: str = ""
    remake: Callable[[dict[str, Any]], View] | None = None

    def __getitem__(self, key: str) -> Any:
        """The panel of that key."""
        for panel in self.panels:
            if panel.key == key:
                return panel
        raise KeyError(key)

    def only(self, *asked: str) -> View:
        """The same with those panels alone that are named, by their keys or their numbers from 1 on."""
        known = {panel.key: panel for panel in self.panels if panel.key}
        known |= {str(number): panel for number, panel in enumerate(self.panels, 1)}
        for name in asked:
            if name not in known:
                numbers, keys = f"1 to {len(self.panels)}", ", ".join(panel.key for panel in self.panels if panel.key)
                raise UsageError(f"there is no panel {name!r}: the view has {numbers}{f', and {keys}' if keys else ''}")
        return replace(self, panels=[known[name] for name in asked], remake=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, every number in full."""
        return self._told([panel.to_dict() for panel in self.panels])

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        """The same for a page, with its controls. most: weights of a map that is sent whole, where rows can be had."""
        told = self._told([panel.to_page(most) for panel in self.panels])
        return told | {"controls": [plain_values(vars(control)) for control in self.controls]}

    def show(self) -> None:
        """Print it."""
        from regard.explain.render.terminal import show

        show(self)

    def to_html(self) -> str:
        """A file that opens from disk and needs no network."""
        from regard.explain.render.file import to_html

        return to_html(self)

    def to_svg(self, size: str = "page") -> str:
        """A picture as SVG. size: "page", as long as it takes; "slide", "wide" or pixels, where one slide holds it."""
        from regard.explain.render.picture import to_svg

        return to_svg(self, size)

    def to_png(self, size: str = "page") -> bytes:
        """The same as PNG."""
        from regard.explain.render.picture import to_png

        return to_png(self, size=size)

    def save(self, path: str | Path, size: str = "page") -> list[Path]:
        """Write it as what the name says, .svg, .png, .html or .json; on several slides it becomes several files."""
        from regard.explain.render.file import save

        return save(self, path, size)

    def animate(self, path: str | Path, seconds: float = 2.0, loop: bool = True, size: str = "slide") -> Path:
        """Write its steps one after the other, `seconds` each, as a moving .png or .svg."""
        from regard.explain.render.frames import animate

        return animate(self, path, seconds, loop, size)

    def _repr_mimebundle_(self, **_: Any) -> Any:
        """What a notebook shows: a widget where anywidget is installed, and HTML that stays when it is exported."""
        from regard.explain.render.notebook import bundle

        return bundle(self)

    def _told(self, panels: list[dict[str, Any]]) -> dict[str, Any]:
        told = {"view": self.name, "title": self.title, "about": self.about, "caveat": self.caveat}
        return finite(told | {"panels": panels})


def _with_math(panel: Panel, tex: str) -> dict[str, Any]:
    """The panel with its equation as MathML in the place of the TeX."""
    told = panel.to_dict()
    if told.pop("tex", ""):
        told["math"] = mathml(tex, block=True)
    return told


def _with_packed(panel: Heat | Links, weights: np.ndarray, most: int | None = None) -> dict[str, Any]:
    """The panel with packed weights, which are never written out: a large map would take seconds and gigabytes."""
    told = replace(panel, weights=np.zeros((0, 0))).to_dict()
    return told | {"weights": packed(weights, most)}
