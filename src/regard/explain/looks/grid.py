"""The maps of all heads of all layers at once: self-attention of either side, and of what is written to its source."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from regard.core.tap import apart, plain, record, resting
from regard.errors import UsageError, nearest
from regard.explain.habits import habit_names
from regard.explain.heads import called, figures, named_here
from regard.explain.look import Look, Options, register_look
from regard.explain.looks.attention import most
from regard.explain.packed import by_block
from regard.explain.site import Site, sites
from regard.explain.thumbnails import LAYER, SIDE, Thumbnails
from regard.explain.view import Panel, View
from regard.explain.weights import CAVEAT, attended, told_of
from regard.tasks.reading import END, START, Capabilities, Reading

WHOLE = 1 << 22  # weights that are kept of all heads together; of a longer text, smaller maps
MOST_TOKENS = 1024
NAME = "name"
VIEWS = ("attention", "alignment")


@dataclass(frozen=True)
class _Seen:
    """What is kept of the heads of a site: maps (H, t, s), what was measured, what each does, where shades end."""

    maps: np.ndarray
    measured: dict[str, np.ndarray]
    names: list[str]
    highs: list[float]


def grid(reading: Reading, options: Options) -> View:
    """A panel of small maps for each way in which positions look at each other."""
    asked, panels = (options.side, options.sort or LAYER), list[Panel]()
    groups = [group for group in _groups(reading) if asked[0] in (None, group[0].rows.name)]
    if not groups:
        there = sorted({group[0].rows.name for group in _groups(reading)})
        raise UsageError(f"there is no attention over the side {asked[0]!r}; there is over {' and '.join(there)}")
    for group in groups:
        panels.append(_panel(reading, group, asked[1]))
    about = {"heads": sum(len(panel.maps) for panel in panels if isinstance(panel, Thumbnails))}
    return View("Every head at once", panels, about, CAVEAT)


def _groups(reading: Reading) -> list[list[Site]]:
    """Sites by what looks at what."""
    found: dict[tuple[str, str, str], list[Site]] = {}
    for meaning in VIEWS:
        for site in sites(reading, meaning):
            if meaning in site.shows:
                found.setdefault((meaning, site.rows.name, site.columns.name), []).append(site)
    return list(found.values())


def _panel(reading: Reading, there: list[Site], sort: str) -> Thumbnails:
    meaning = next(name for name in VIEWS if name in there[0].shows)
    block = _block(there)
    seen, difference = (_own if meaning == VIEWS[0] else _between)(reading, there, block)
    is_own = meaning == VIEWS[0]
    tried = habit_names(reading, there) if is_own else []
    names = [called(tried[number] if tried else [], one.names) for number, one in enumerate(seen)]
    site = there[0]
    whole = Thumbnails(
        title=_title(site, is_own),
        key=f"{site.rows.name} {site.columns.name}",
        maps=np.concatenate([one.maps for one in seen]),
        places=[(site.layer, head + 1) for site, one in zip(there, seen, strict=True) for head in range(len(one.maps))],
        labels=[
            f"{site.layer}{'b' if site.backward else ''}.{head + 1}"
            for site, one in zip(there, seen, strict=True)
            for head in range(len(one.maps))
        ],
        names=[name for some in names for name in some],
        figures={name: np.concatenate([one.measured[name] for one in seen]).tolist() for name in seen[0].measured},
        highs=[high for one in seen for high in one.highs],
        rows=_written(site, is_own),
        columns=site.columns.labels,
        row_name="looks",
        column_name="at",
        block=block,
        alone=(meaning, site.rows.name if is_own else ""),
    )
    return _ordered(replace(whole, note=_note(whole, bool(tried), difference)), sort)


def _title(site: Site, is_own: bool) -> str:
    return f"The {site.rows.name} at itself" if is_own else f"The {site.rows.name} at the {site.columns.name}"


def _written(site: Site, is_own: bool) -> tuple[str, ...]:
    """Where tokens are fed back, what a decoder looks at while it reads one serves the one that it writes then."""
    labels = site.rows.labels
    return labels if is_own or labels[:1] != (START,) else (*labels[1:], END)


def _block(there: Sequence[Site]) -> int:
    """How many positions a cell stands for, of maps that are kept small enough together."""
    rows, columns = len(there[0].rows), len(there[0].columns)
    # A head or two too many in the reckoning do no harm: how many a layer has is told by its maps alone.
    heads = sum(int(getattr(getattr(site.module, "config", None), "n_heads", 1)) for site in there)
    if heads * rows * columns <= WHOLE:
        return 1
    return max(1, math.ceil(max(rows, columns) / SIDE))


def _kept(every: np.ndarray, block: int, is_own: bool) -> _Seen:
    measured = figures(every, is_own)
    small = np.stack([by_block(one, block) for one in every]) if block > 1 else every
    names = named_here(every, measured, is_own)
    return _Seen(small.astype(np.float32), measured, names, [most(one) for one in every])


def _own(reading: Reading, there: list[Site], block: int) -> tuple[list[_Seen], float]:
    """Of self-attention: each layer is made small as it passes, so that the memory is that of one."""
    return attended(reading, there, lambda weights: _kept(weights.float().cpu().numpy(), block, True))


@torch.no_grad()
def _between(reading: Reading, there: list[Site], block: int) -> tuple[list[_Seen], float]:
    """Of what is written at its source, which a recurrence looks at a step at a time."""
    model, heard = plain(reading.model), []
    fast = reading.fast()
    with resting(model), ExitStack() as stack:
        for site in there:
            heard.append(stack.enter_context(record(model, site.tap(VIEWS[1]))))
        difference = apart(reading.before_head(), fast)
    found = []
    for seen in heard:
        ((name, entries),) = seen.items()
        tap: Any = model.get_submodule(name)
        joined = tap.joined([one for one in entries if one.numel()])
        found.append(_kept(joined[0].float().cpu().numpy(), block, False))
    return found, difference


def _note(panel: Thumbnails, is_tried: bool, difference: float) -> str:
    counts = Counter(name for name in panel.names if name)
    told = ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"
    where = "induction and same token by random tokens that come twice, the others on this text" if is_tried else ""
    kept = f"each cell is the largest of {panel.block} x {panel.block}; " if panel.block > 1 else ""
    return (
        f"{len(panel.maps)} heads; with a name: {told}{f' ({where})' if where else ''}. Shades of each go to its own "
        f"largest weight; {kept}{told_of(difference)}."
    )


def _ordered(panel: Thumbnails, sort: str) -> Thumbnails:
    """The panel with its maps by name, or the least of a figure first; of a share, the most."""
    known = [LAYER, NAME, *panel.figures]
    if sort not in known:
        raise UsageError(f"--sort {sort}: the heads are sorted by {', '.join(known)}{nearest(sort, known)}")
    if sort == LAYER:
        return panel
    count = range(len(panel.maps))
    if sort == NAME:
        often = Counter(panel.names)
        order = sorted(count, key=lambda n: (not panel.names[n], -often[panel.names[n]], panel.names[n]))
    else:
        rises = sort in ("entropy", "distance")
        order = sorted(count, key=lambda n: panel.figures[sort][n] * (1 if rises else -1))
    told = {name: [getattr(panel, name)[n] for n in order] for name in ("places", "labels", "names", "highs")}
    by_name = {name: [values[n] for n in order] for name, values in panel.figures.items()}
    return replace(panel, maps=panel.maps[order], figures=by_name, sort=sort, **told)


def _fits(can: Capabilities) -> bool:
    return "attention" in can.shows or ("alignment" in can.shows and not can.fitted)


register_look(Look("grid", "the maps of all heads of all layers at once", grid, fits=_fits, max_tokens=MOST_TOKENS))
