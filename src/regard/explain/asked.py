"""What can be asked for otherwise: the controls that many looks share, and panels with a value for each token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regard.explain.look import numbers
from regard.explain.site import Site
from regard.explain.view import Bars, Control, Curves, Panel
from regard.tasks.reading import Reading, Side

# More bars than these are a line.
MOST_BARS = 48
# Rows of a picture of units or channels.
MOST_ROWS = 24


def layer_control(found: Sequence[Site], side: str, layer: int) -> Control:
    """The layers that there are on a side."""
    known = sorted({site.layer for site in found if site.rows.name == side})
    return Control(name="layer", label="layer", kind="choice", value=layer, values=known)


def position_control(side: Side, number: int | None) -> Control:
    return Control(name="position", label="position", kind="choice", value=number, values=numbers(side))


def side_control(names: Sequence[str], side: str) -> Control:
    return Control(name="side", label="side", kind="choice", value=side, values=list(dict.fromkeys(names)))


def seed_control(seed: int) -> Control:
    return Control(name="seed", label="seed", kind="range", value=seed, low=0, high=99, step=1)


def side_number(reading: Reading, name: str | None, default: int = -1) -> int:
    """The number of a side of tokens among the inputs, from 0 on."""
    return default % len(reading.sides) if name is None else reading.sides.index(reading.side(name))


def by_token(
    side: Side, values: Sequence[float], *, title: str, note: str = "", key: str = "", unit: str = ""
) -> Panel:
    """A value for each position: a bar for each token, or a line where there are many."""
    if len(values) <= MOST_BARS:
        return Bars(title=title, note=note, key=key, names=list(side.labels), values=list(values), unit=unit)
    line = points(numbers(side), values)
    return Curves(title=title, note=note, key=key, lines={unit or title: line}, x="position", y=unit)


def points(x: Iterable[float], y: Iterable[float]) -> Sequence[tuple[float, float]]:
    """A line of a panel of curves."""
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def spread(count: int, most: int = MOST_ROWS) -> list[int]:
    """At most so many numbers below `count`, the first and the last among them, evenly apart.

    >>> spread(3, 4), spread(9, 3)
    ([0, 1, 2], [0, 4, 8])
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
