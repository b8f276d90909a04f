"""The learning curves of several runs on the same axes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError, UsageError, nearest
from regard.explain.view import Control, Curves, Listing, Note, Panel, View
from regard.training.metrics import evaluations, thinned
from regard.training.run_folder import read_config

AXES = {"tokens": "tokens seen", "step": "steps", "seconds": "seconds of training"}
LOSS = "loss"


def learning_curves(paths: Mapping[str, Path], x: str = "tokens", y: str = LOSS, log: bool = False) -> View:
    """Held-out scores of runs by what they had seen.

    x    tokens, step or seconds.
    y    what was measured on held-out data while training: the loss, or a score of the task.
    log  whether x goes by powers of ten.
    """
    if x not in AXES:
        raise UsageError(f"x: unknown axis {x!r}{nearest(x, AXES)}")
    points = {name: evaluations(path) for name, path in paths.items()}
    measured = sorted({key for told in points.values() for one in told for key in one if key.startswith("valid_")})
    scores = [LOSS, *(key.removeprefix("valid_") for key in measured if key != f"valid_{LOSS}")]
    if not paths:
        scores = [y]  # the reader may choose a run again, and finds what was shown of it before
    if y not in scores:
        raise UsageError(f"y: nothing of the name {y!r} was measured{nearest(y, scores)}")
    lines = {name: _line(told, x, f"valid_{y}") for name, told in points.items()}
    shown = {name: line for name, line in lines.items() if line}
    controls = [
        Control(name="x", label="by", kind="choice", value=x, values=list(AXES)),
        Control(name="y", label="held-out", kind="choice", value=y, values=scores),
        Control(name="log", label="powers of ten", kind="toggle", value=log),
    ]
    return View(
        name="curves",
        title=f"Held-out {y} while training",
        panels=_unlike(paths, shown) + _panels(shown, [name for name in lines if name not in shown], x, y, log),
        controls=controls,
        remake=lambda asked: learning_curves(paths, **{"x": x, "y": y, "log": log} | asked),
    )


def _line(points: list[dict[str, float]], x: str, y: str) -> list[tuple[float, float]]:
    """The points that can be drawn: a score may be infinite."""
    return [(point[x], point[y]) for point in points if x in point and y in point and math.isfinite(point[y])]


def _panels(lines: dict[str, list[tuple[float, float]]], empty: list[str], x: str, y: str, log: bool) -> list[Panel]:
    panels: list[Panel] = []
    if lines:
        drawn: dict[str, Sequence[tuple[float, float]]] = {name: thinned(line) for name, line in lines.items()}
        panels.append(Curves(key="curves", lines=drawn, x=AXES[x], y=f"held-out {y}", x_log=log))
        columns = ["run", "evaluations#", f"last {y}#", f"lowest {y}#", f"highest {y}#"]
        panels.append(Listing(key="ends", columns=columns, rows=[_row(name, line) for name, line in lines.items()]))
    if empty:
        panels.append(Note(text=f"Nothing of the kind was measured while training: {', '.join(empty)}."))
    if not panels:
        panels.append(Note(text="No run is chosen."))
    return panels


def _unlike(paths: Mapping[str, Path], shown: Collection[str]) -> list[Panel]:
    """That the runs were not measured on the same, where they were not."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in shown:
        with suppress(CheckpointError):  # of a damaged run the list says so
            about = read_config(paths[name])["data"]
            found.setdefault((str(about.get("hash")), _data(about)), []).append(name)
    if len({number for number, _ in found}) < 2:
        return []
    told = "; ".join(f"{', '.join(names)} on {data}" for (_, data), names in found.items())
    return [Note(text=f"Not of the same data or tokens, so that the curves do not compare the models: {told}.")]


def _data(about: Mapping[str, Any]) -> str:
    """What a run was trained on, and its tokens where somebody chose them."""
    tokens = about.get("tokens") or "auto"
    return (about.get("path") or "data unknown") + ("" if tokens == "auto" else f" in {tokens}")


def _row(name: str, line: list[tuple[float, float]]) -> list[Any]:
    values = [value for _, value in line]
    return [name, len(values), values[-1], min(values), max(values)]
