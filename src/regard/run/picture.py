"""Picture: a drawing that a notebook shows, and that is saved as SVG or PNG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regard.charts.drawing import Drawing
from regard.charts.raster import png
from regard.charts.svg import inline_svg, svg
from regard.errors import UsageError
from regard.storage import disk

SUFFIXES = (".svg", ".png")
SCALE = 2.0  # pixels of a PNG for each of the drawing


@dataclass(frozen=True, eq=False, repr=False)
class Picture:
    """A drawing and its ways out: the last line of a notebook's cell, or a file."""

    drawing: Drawing

    def to_svg(self) -> str:
        """The text of an SVG file."""
        return svg(self.drawing)

    def to_png(self, scale: float = SCALE) -> bytes:
        """The bytes of a PNG file; Pillow draws it."""
        return png(self.drawing, scale)

    def save(self, path: str | Path) -> None:
        """Write a file whose name ends with .svg or .png, whole or not at all."""
        place = Path(path).expanduser()
        kind = place.suffix.lower()
        if kind not in SUFFIXES:
            raise UsageError(f"{place}: a picture is saved as one of {', '.join(SUFFIXES)}; give the file such a name")
        if not place.absolute().parent.is_dir():
            raise UsageError(f"{place}: there is no folder {place.parent} to write into")
        disk.write_for_person(place, [self.to_png() if kind == ".png" else self.to_svg().encode()])

    def __repr__(self) -> str:
        return f"Picture({self.drawing.title!r}, {round(self.drawing.width)} x {self.drawing.height})"

    def _repr_html_(self) -> str:
        return f'<div style="max-width:{round(self.drawing.width)}px">{inline_svg(self.drawing)}</div>'
