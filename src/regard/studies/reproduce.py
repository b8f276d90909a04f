"""Running studies: seeds one after the other, a result file and a figure for each, a verdict at the end.

OUT/mask.json     claim, source, rule, the numbers of each seed, verdict, cost, versions
OUT/mask.svg      its figure
OUT/seeds/        what the seeds have found so far, so that a study that was cut off goes on where it was
"""

from __future__ import annotations

import importlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.regular import read_regular
from regard.errors import RegardError, UsageError, blamed_on, nearest
from regard.studies.claims.study import SEEDS, Found, Lab, ScaleName, Study
from regard.studies.machine import versions
from regard.training import disk

# Name, which is that of the file in `claims`, to class. The one line of a study.
STUDIES = {
    "mask": "Mask",
    "forget": "Forget",
    "bottleneck": "Bottleneck",
    "passing": "Passing",
    "pooling": "Poolings",
    "quadratic": "Quadratic",
    "parallel": "Parallel",
    "order": "Order",
    "length": "Length",
    "depth": "Depth",
    "query": "Query",
    "meaning": "Meaning",
    "matrix": "MatrixForm",
    "path": "PathLength",
    "access": "RandomAccess",
    "scale": "Scale",
    "electricity": "Electricity",
    "mad": "Mad",
    "p0": "Ladder",
    "p1": "Reversed",
    "p2": "Search",
    "p3": "Depth",
    "p4": "Attention",
    "p5": "FineTuned",
    "p6": "Sizes",
    "p7": "InContext",
    "p8": "Bertology",
    "p9": "Backpack",
    "p10": "LongRange",
    "p11": "Selection",
    "p12": "StateSpaceDuality",
}
OUT = Path("runs/reproduce")
FAILED = "failed"
LARGEST = 1 << 28  # bytes of a file of results


@dataclass(frozen=True)
class Result:
    """What became of a study. outcome: of the verdict, or "failed"."""

    study: str
    scale: ScaleName
    claim: str
    source: str
    rule: str
    outcome: str
    reason: str
    seeds: tuple[Found, ...]
    seconds: float
    device: str
    versions: dict[str, str]
    figure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the figure is a file of its own."""
        return {key: value for key, value in vars(self).items() if key != "figure"} | {"seeds": list(self.seeds)}


def names() -> list[str]:
    """Every study."""
    return list(STUDIES)


def study(name: str) -> Study:
    """The study of that name; an unknown one names the nearest."""
    if name not in STUDIES:
        raise UsageError(f"unknown study {name!r}{nearest(name, STUDIES)}; regard reproduce --list names them all")
    return getattr(importlib.import_module(f"regard.studies.claims.{name}"), STUDIES[name])()


def reproduce(
    ids: Sequence[str], scale: ScaleName, *, device: str = "cpu", out: Path = OUT, force: bool = False
) -> Iterator[Result]:
    """The results of some studies, each as soon as it is there; a finished one is read again unless `force`."""
    for one in [study(name) for name in ids or names()]:
        done = out / f"{one.id}.json"
        if not force and (found := saved(done, scale)) is not None:
            yield found
            continue
        yield _run(one, scale, device, out, force)


def saved(path: Path, scale: ScaleName | None = None) -> Result | None:
    """A result from its file, when it is there, whole and, where one is asked for, of that scale."""
    try:
        told = json.loads(read_regular(path, LARGEST))
        figure = path.with_suffix(".svg")
        drawn = read_regular(figure, LARGEST).decode() if figure.exists() else ""
        found = Result(**told | {"seeds": tuple(told["seeds"])}, figure=drawn)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if found.outcome != FAILED and scale in (None, found.scale) else None


def _run(one: Study, scale: ScaleName, device: str, out: Path, force: bool) -> Result:
    if scale not in one.scales:
        raise UsageError(f"{one.id} has no form for {scale}; it has {', '.join(one.scales)}")
    seeds = SEEDS[:1] if scale == "quick" else SEEDS
    found: list[Found] = []
    spent = 0.0
    try:
        for seed in seeds:
            part = out / "seeds" / f"{one.id}-{scale}-{device}-{seed}.json"
            numbers, seconds = _seed(one, Lab(scale, seed, Path(), device), part, force)
            found.append(numbers)
            spent += seconds
        verdict = one.judge(found)
        outcome, reason, figure = verdict.outcome, verdict.reason, one.figure(found)
    except (RegardError, MemoryError, RuntimeError, ArithmeticError) as error:
        outcome, reason, figure = FAILED, str(error) or type(error).__name__, ""
    told = (one.id, scale, one.claim, one.source, one.rule, outcome, reason)
    result = Result(*told, tuple(found), round(spent, 1), device, versions(), figure)
    out.mkdir(parents=True, exist_ok=True)
    disk.publish(out / f"{one.id}.json", [json.dumps(result.to_dict(), indent=1).encode()])
    if figure:
        disk.publish(out / f"{one.id}.svg", [figure.encode()])
    return result


def _seed(one: Study, lab: Lab, part: Path, force: bool) -> tuple[dict[str, Any], float]:
    """The numbers of one seed and the seconds they took, measured now or found in their file."""
    if not force and part.exists():
        with blamed_on(part):
            told = json.loads(read_regular(part, LARGEST))
            return dict(told["found"]), float(told["seconds"])
    folder = Path(tempfile.mkdtemp(prefix=f"regard-{one.id}-"))
    began = time.monotonic()
    try:
        found = one.measure(Lab(lab.scale, lab.seed, folder, lab.device))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - began
    part.parent.mkdir(parents=True, exist_ok=True)
    disk.publish(part, [json.dumps({"found": found, "seconds": seconds}).encode()])
    return found, seconds
