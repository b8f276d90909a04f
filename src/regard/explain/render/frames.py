"""A view in motion: the panels of `steps` one after the other, an alignment a written word at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from regard.charts.apng import apng
from regard.charts.drawing import MARGIN, RULE, Box, Drawing
from regard.charts.fonts import missing
from regard.charts.motion import moving_svg
from regard.charts.plot import COLOURS
from regard.charts.raster import image
from regard.charts.size import Size, size_of
from regard.errors import UsageError
from regard.explain.overlay import Overlay
from regard.explain.render.file import require_folder, warn
from regard.explain.render.halves import trimmed, worded
from regard.explain.render.picture import fonts_of
from regard.explain.render.slides import corner, fill, headed
from regard.explain.view import Heat, Links, Panel, View
from regard.storage import disk

SUFFIXES = (".png", ".apng", ".svg")
MOST_FRAMES, SHORTEST, LONGEST = 120, 0.1, 60.0
PASSED = 0.25  # of its weight is left to see of a word that was written before
BAR = 4
Told = tuple[list[Panel], str]  # the panels of a frame, and what stands in its corner


def animate(
    view: View,
    path: str | Path,
    seconds: float = 2.0,
    loop: bool = True,
    size: str = "slide",
    tell: Callable[[str], None] = warn,
) -> Path:
    """Write a view as a moving picture whole or not at all. seconds: how long each step stays."""
    path = Path(path).expanduser()
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise UsageError(f"{path}: an animation is one of {', '.join(SUFFIXES)}; give the file such a name")
    if not SHORTEST <= seconds <= LONGEST:
        raise UsageError(f"a step of {seconds:g} s: a step stays {SHORTEST:g} to {LONGEST:g} seconds")
    found = size_of(size)
    if found is None:
        raise UsageError("an animation is on slides of one size: leave out the size 'page'")
    require_folder(path)
    made = frames(view, found)
    for line in missing(made):
        tell(line)
    if kind == ".svg":
        data = moving_svg(made, found.scale, seconds, loop, fonts_of(made, tell)).encode("utf-8")
    else:
        # One after the other: all together may be more than a machine holds.
        data = apng((np.asarray(image(one, found.scale)) for one in made), len(made), seconds, loop)
    disk.write_for_person(path, [data])
    return path


def frames(view: View, size: Size) -> list[Drawing]:
    """Every frame of a view as a slide."""
    steps = _steps(view) if view.name == "steps" else _words(view)
    if len(steps) < 2:
        raise UsageError(
            f"the view {view.name or view.title!r} has no steps to show one after the other; 'steps' and 'alignment' do"
        )
    if len(steps) > MOST_FRAMES:
        raise UsageError(f"the view has {len(steps)} steps, and an animation at most {MOST_FRAMES}; save it as .html")
    made = [slide for panels, told in steps for slide in _slides(view, panels, size, told)]
    for number, slide in enumerate(made, 1):
        wide = slide.room * number / len(made)
        y = slide.height - 2 * BAR
        slide.add(Box(MARGIN, y, slide.room, BAR, RULE), Box(MARGIN, y, wide, BAR, COLOURS[0]))
    return made


def _slides(view: View, panels: list[Panel], size: Size, told: str) -> list[Drawing]:
    """Panels on one slide; on several where they are too tall."""
    made, rest = [], [[panel] for panel in panels]
    while rest:
        slide = headed(view, size)
        rest = fill(slide, rest)
        corner(slide, told)
        made.append(slide)
    return made


def _steps(view: View) -> list[Told]:
    return [([trimmed(panel)], f"step {n} of {len(view.panels)}") for n, panel in enumerate(view.panels, 1)]


def _words(view: View) -> list[Told]:
    """An alignment as far as it is written: of two rows of words, or over a picture, one word at a time."""
    links = next((panel for panel in view.panels if isinstance(panel, Links)), None)
    if links is not None:
        whole = replace(links, pairs=(), note="")  # lines that would change the size of letters from frame to frame
        count = len(links.lower)
        return [*(([_until(whole, n)], f"word {n} of {count}") for n in range(1, count + 1)), ([whole], "")]
    if view.name != "alignment":
        return []
    over = next((panel for panel in view.panels if isinstance(panel, Overlay)), None)
    if over is not None:
        count = len(over.words)
        return [([worded(over, range(n - 1, n))], f"word {n} of {count}") for n in range(1, count + 1)]
    heat = next((panel for panel in view.panels if isinstance(panel, Heat)), None)
    if heat is None:
        return []
    count = len(heat.weights)
    return [([_rows_until(heat, n)], f"word {n} of {count}") for n in range(1, count + 1)]


def _until(links: Links, count: int) -> Links:
    """Links of the first words that are written; those of all but the last are pale."""
    weights = np.nan_to_num(np.asarray(links.weights, dtype=np.float64))
    shares = np.where(np.arange(len(weights)) < count - 1, PASSED, 0.0)
    shares[count - 1] = 1.0
    return replace(links, weights=weights * shares[:, None])


def _rows_until(heat: Heat, count: int) -> Heat:
    weights = np.where(np.arange(len(heat.weights))[:, None] < count, heat.weights, min(0.0, heat.low))
    return replace(heat, weights=weights)
