"""Running studies: seeds one after the other, a result file and a figure for each, a verdict at the end.

OUT/mask.json     claim, source, rule, the numbers of each seed, verdict, cost, versions
OUT/mask.svg      its figure
OUT/seeds/        what the seeds have found so far, so that a study that was cut off goes on where it was

One page with all verdicts: claims, rules, numbers, figures, costs and versions. No script, no network.
"""

from __future__ import annotations

import json
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Literal

from regard.charts.page import figure, page
from regard.core.config import decode
from regard.core.plugin import imported
from regard.core.version import __version__
from regard.errors import CheckpointError, Stopped, UsageError
from regard.storage import disk, manifest
from regard.storage.lock import only_writer
from regard.storage.regular import read_regular
from regard.storage.temporary import temporary_folder
from regard.studies.ahead import Ahead, Called
from regard.studies.claims.study import SEEDS, Found, Lab, Outcome, ScaleName, Study
from regard.studies.identity import versions
from regard.studies.imported.study import ON
from regard.studies.ledger import KEPT
from regard.studies.pool.opening import SideBySide, opened
from regard.studies.registry import names, number_of, study
from regard.training.interrupt import Interrupt

OUT = Path("runs/reproduce")
FAILED: Literal["failed"] = "failed"
PARTS = "seeds"
LARGEST = 1 << 28  # bytes of a file of results
ALONE = SideBySide()
Measure = Callable[[str], Iterator[tuple[dict[str, Any], float]]]
MARKS = {"holds": "good", "does not hold": "bad", "not settled": "open", "failed": "bad"}


@dataclass(frozen=True)
class Result:
    """What became of a study. outcome: of the verdict, or "failed"."""

    study: str
    scale: ScaleName
    claim: str
    source: str
    rule: str
    outcome: Outcome | Literal["failed"]
    reason: str
    seeds: tuple[Found, ...]
    seconds: float
    device: str
    versions: dict[str, str]
    figure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the figure is a file of its own."""
        return {key: value for key, value in vars(self).items() if key != "figure"} | {"seeds": list(self.seeds)}


def reproduce(
    ids: Sequence[str | Study],
    scale: ScaleName,
    *,
    device: str = "cpu",
    out: Path = OUT,
    force: bool = False,
    workers: SideBySide = ALONE,
) -> Iterator[Result]:
    """The results of some studies, each as soon as it is there; a finished one is read again unless `force`.

    A result of another rule or of another version of regard is none of this study, and is found anew. A signal ends
    the study that runs; what its seeds have found is kept. workers: seeds of all studies are measured side by side.
    """
    chosen = [study(one) if isinstance(one, str) else one for one in ids or names()]
    for one in chosen:
        if scale not in one.scales:
            raise UsageError(f"{one.name} has no form for {scale}; it has {', '.join(one.scales)}")
    _refuse_other(out)
    to_run = [one.name for one in chosen if force or not _is_kept(one, out, scale)]
    for one in chosen:
        if one.name in to_run:
            one.check(device)
    with only_writer(out):
        if (out / PARTS).is_symlink():
            raise CheckpointError(f"{out / PARTS}: is a link where the folder of the seeds belongs; move it away")
        seeds = {one.name: _seeds(one, scale, device, out, force) for one in chosen if one.name in to_run}
        with _measuring(workers, device, [one for one in chosen if one.name in seeds], seeds) as measured:
            for one in chosen:
                found = None if one.name in to_run else kept(one.name, out, scale)
                yield found or _unless_stopped(one, scale, device, out, partial(measured, one.name))


def _is_kept(one: Study, out: Path, scale: ScaleName) -> bool:
    """Whether a finished result of the same rule, version, run and data is there."""
    known_by, found = {"regard": __version__} | one.about, kept(one.name, out, scale)
    return found is not None and found.rule == one.rule and known_by.items() <= found.versions.items()


def _seeds(one: Study, scale: ScaleName, device: str, out: Path, force: bool) -> dict[int, Called]:
    """What is to be measured of a study."""

    def part(seed: int) -> Path:
        return _seed_file(out / PARTS, one.name, f"{scale}-{device}-{seed}.json")

    chosen = SEEDS[:1] if scale == "quick" else SEEDS
    return {seed: Called(_seed, one, Lab(scale, seed, Path(), device), part(seed), force) for seed in chosen}


@contextmanager
def _measuring(
    workers: SideBySide, device: str, studies: Sequence[Study], seeds: Mapping[str, Mapping[int, Called]]
) -> Iterator[Measure]:
    """A function from the name of a study to the numbers of its seeds, which are measured meanwhile, or when asked."""
    if not workers.elsewhere:
        yield lambda name: (job(_untold) for job in seeds[name].values())
        return
    own = __name__.partition(".")[0]
    outside = {module for module in (type(one).__module__ for one in studies) if module.partition(".")[0] != own}
    with opened(workers, device, sorted({*imported(), *outside})) as pool:
        ahead = Ahead(pool, {(name, seed): job for name, jobs in seeds.items() for seed, job in jobs.items()})
        yield lambda name: (ahead.result((name, seed)) for seed in seeds[name])


def _untold(_: Any) -> None:
    """What a study says while it is measured here."""


def write_page(page: str, out: Path) -> Path:
    """The page of verdicts, put into the folder of the results."""
    with only_writer(out):
        disk.publish(out / "report.html", [page.encode()])
    return out / "report.html"


def _unless_stopped(
    one: Study, scale: ScaleName, device: str, out: Path, measured: Callable[[], Iterator[tuple[dict[str, Any], float]]]
) -> Result:
    with Interrupt() as interrupt:
        result = interrupt.at_once(lambda: _run(one, scale, device, out, measured()))
        if result is None or interrupt.received is not None:
            raise Stopped(
                f"{one.name}: stopped by {interrupt.received}; what is done is in {out}, the same command goes on"
            )
    return result


def _refuse_other(out: Path) -> None:
    """Leave the folders of runs and comparisons to them."""
    for name, what in ((manifest.NAME, "a run"), (KEPT, "a comparison")):
        if (out / name).exists():
            raise UsageError(f"{out}: already holds {what}; choose another --out")


def saved(path: Path, scale: ScaleName | None = None) -> Result | None:
    """A result from its file, when it is there, whole and, where one is asked for, of that scale."""
    try:
        told = json.loads(read_regular(path, LARGEST))
        figure = path.with_suffix(".svg")
        drawn = read_regular(figure, LARGEST).decode() if figure.exists() else ""
        found = Result(**_result(told), figure=drawn)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, UsageError):
        return None
    is_of_file = found.study == path.stem
    return found if is_of_file and found.outcome != FAILED and scale in (None, found.scale) else None


def _result(told: Any) -> dict[str, Any]:
    """What a file says of a result, each value of its type."""
    hints = {name: hint for name, hint in typing.get_type_hints(Result).items() if name not in ("seeds", "versions")}
    if not isinstance(told, dict) or not isinstance(told["versions"], dict) or not isinstance(told["seeds"], list):
        raise TypeError("no result of a study")
    if not all(isinstance(one, dict) for one in told["seeds"]):
        raise TypeError("a seed has found something")
    versions = {name: decode(value, str, name) for name, value in told["versions"].items()}
    known = {name: decode(value, hints[name], name) for name, value in told.items() if name in hints}
    return known | {"seeds": tuple(told["seeds"]), "versions": versions}


def every_kept(out: Path) -> list[Result]:
    """All results in a folder: of the studies in their order, then of those on a run."""
    on_runs = sorted(path.stem for path in out.glob(f"*{ON}*.json"))
    return [one for name in [*names(), *on_runs] if (one := kept(name, out)) is not None]


def kept(name: str, out: Path, scale: ScaleName | None = None) -> Result | None:
    """The result of a study in a folder of results, also one that was kept under the number of its paper."""
    found = saved(out / f"{name}.json", scale)
    number = number_of(name)
    if found is None and number:
        found = saved(out / f"{number}.json", scale)
    return found and replace(found, study=name)


def _run(
    one: Study, scale: ScaleName, device: str, out: Path, measured: Iterator[tuple[dict[str, Any], float]]
) -> Result:
    """measured: the numbers of each seed, and the seconds they took."""
    found: list[Found] = []
    spent = 0.0
    try:
        for numbers, seconds in measured:
            found.append(numbers)
            spent += seconds
        verdict = one.judge(found)
        outcome, reason, figure = verdict.outcome, verdict.reason, one.figure(found)
    except (Stopped, *one.refuses):
        raise
    except Exception as error:
        # Whatever it is, the other studies go on.
        outcome, reason, figure = FAILED, str(error) or type(error).__name__, ""
    told = (one.name, scale, one.claim, one.source, one.rule, outcome, reason)
    result = Result(*told, tuple(found), round(spent, 1), device, versions() | one.given | one.about, figure)
    if outcome == FAILED and kept(one.name, out) is not None:
        return result  # what was found before stays
    disk.publish(out / f"{one.name}.json", [json.dumps(result.to_dict(), indent=1).encode()])
    if figure:
        disk.publish(out / f"{one.name}.svg", [figure.encode()])
    return result


def _seed_file(folder: Path, name: str, rest: str) -> Path:
    """Where the numbers of a seed are; under the number of its paper where they were kept so."""
    numbered = folder / f"{number_of(name)}-{rest}"
    return numbered if number_of(name) and numbered.exists() else folder / f"{name}-{rest}"


def _seed(one: Study, lab: Lab, part: Path, force: bool) -> tuple[dict[str, Any], float]:
    """The numbers of one seed and the seconds they took, measured now or found in their file."""
    known_by = {"rule": one.rule, "regard": __version__} | one.about
    if not force and (told := _read_seed(part)).get("known_by") == known_by:
        return told["found"], told["seconds"]
    began = time.monotonic()
    with temporary_folder(None, f"regard-{one.id}-") as folder:
        found = one.measure(Lab(lab.scale, lab.seed, folder, lab.device))
    seconds = time.monotonic() - began
    part.parent.mkdir(parents=True, exist_ok=True)
    told = {"found": found, "seconds": seconds, "known_by": known_by}
    disk.publish(part, [json.dumps(told).encode()])
    return found, seconds


def _read_seed(part: Path) -> dict[str, Any]:
    """What a seed has found; nothing where its file is not there or damaged."""
    try:
        told = json.loads(read_regular(part, LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    is_whole = isinstance(told, dict) and isinstance(told.get("found"), dict)
    return told if is_whole and isinstance(told.get("seconds"), (int, float)) else {}


def verdicts_page(results: Sequence[Result]) -> str:
    """The page of some results."""
    counts = {outcome: sum(one.outcome == outcome for one in results) for outcome in MARKS}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    rows = "".join(
        f'<tr><td><a href="#{escape(one.study)}">{escape(one.study)}</a></td><td>{escape(one.claim)}</td>'
        f'<td class="{MARKS[one.outcome]}">{one.outcome}</td><td>{escape(one.scale)}</td>'
        f"<td>{one.seconds:.0f} s</td></tr>"
        for one in results
    )
    parts = [
        f"<p>{told or 'Nothing has been run yet'}.</p>",
        f"<table><tr><th>study</th><th>claim</th><th>verdict</th><th>scale</th><th>cost</th></tr>{rows}</table>",
        *map(_section, results),
    ]
    return page("Claims and verdicts", "".join(parts))


def _section(one: Result) -> str:
    about = ", ".join(f"{name} {value}" for name, value in one.versions.items())
    number = number_of(one.study)
    name = f"{one.study} ({number})" if number else one.study
    return (
        f'<section id="{escape(one.study)}"><h2>{escape(name)}: {escape(one.claim)}</h2>'
        f'<p class="{MARKS[one.outcome]}"><b>{one.outcome}</b>: {escape(one.reason)}.</p>'
        f"<p>Rule: {escape(one.rule)}. Source: {escape(one.source)}.</p>{figure(one.figure, one.claim)}"
        f"<p><small>{len(one.seeds)} seeds, {escape(one.scale)}, {one.seconds:.0f} s on {escape(one.device)}; "
        f"{escape(about)}</small></p></section>"
    )
