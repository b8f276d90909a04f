"""The roofline: what a row reached beside what the machine allows it (Williams, Waterman, Patterson 2009).

reached = operations / seconds <= min(operations a second, bytes a second x intensity),  intensity = operations / bytes
"""

from __future__ import annotations

from collections.abc import Sequence

from regard.bench.machine import Machine
from regard.bench.race import Row
from regard.charts.chart import Series, numbered_drawing
from regard.charts.plot import Axis, short
from regard.charts.svg import svg
from regard.errors import UsageError

AROUND = 2.0  # times the least and the largest intensity that the roof reaches beyond them


def roofline(machine: Machine | None, rows: Sequence[Row]) -> str:
    """The ceilings of a machine as lines and a numbered dot for every work that has a floor, as SVG."""
    works = distinct(rows)
    if machine is None or not works:
        raise UsageError("none of these benchmarks has a floor that can be drawn")
    points = [Series(f"{name}: {share:.0%}", [(intensity, reached)]) for name, intensity, reached, share in works]
    ridge = machine.flops / machine.bandwidth
    intensities = [ridge, *(intensity for _, intensity, _, _ in works)]
    low, high = min(intensities) / AROUND, max(intensities) * AROUND
    roof = [
        Series(f"{short(machine.bandwidth)}B/s", [(low, low * machine.bandwidth), (ridge, machine.flops)]),
        Series(f"{short(machine.flops)}FLOP/s", [(ridge, machine.flops), (high, machine.flops)]),
    ]
    x, y = Axis("operations a byte", log=True), Axis("operations a second", log=True)
    return svg(numbered_drawing(f"Reached on {machine.name}, {machine.dtype}", roof, points, x, y))


def distinct(rows: Sequence[Row]) -> list[tuple[str, float, float, float]]:
    """Name, intensity, operations a second and share of each counted work, once whatever it stands beside."""
    found: dict[str, tuple[str, float, float, float]] = {}
    for row in rows:
        if row.operations and row.bytes and row.seconds and row.share is not None:
            name = row.name.partition(", beside ")[0]
            found.setdefault(name, (name, row.operations / row.bytes, row.operations / row.seconds, row.share))
    return list(found.values())
