"""What a series is learnt from and what is held out of it: the end, from one moment on for all series of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from regard.data.account import Account
from regard.data.grid import spans, stamp, steps_in, ticks
from regard.data.panel import listed, read_panel
from regard.data.series import Panel, Roles
from regard.data.settings import BY_HASH, DataSettings
from regard.data.worlds import PREFIX, from_spec
from regard.data.worlds.electricity import ElectricityMarket
from regard.errors import DataError, UsageError
from regard.tasks.series_processor import SeriesProcessor, roles_for

TAIL = re.compile(r"tail:(0[.]\d+|[1-9]\d*[hdwmy])")


@dataclass(frozen=True, eq=False)
class Parts:
    """Series, where the held-out part of each begins, and the best possible scores."""

    panel: Panel
    borders: np.ndarray
    best: dict[str, float]

    def kept(self, labels: Iterable[str]) -> Parts:
        """Only the series of these labels."""
        wanted = set(labels)
        numbers = [number for number, one in enumerate(self.panel.series) if one.label in wanted]
        left = [one.label for one in self.panel.series if one.label not in wanted]
        notes = (f"left out, for nothing of them comes before what is held out: {listed(left)}",) if left else ()
        series = tuple(self.panel.series[number] for number in numbers)
        panel = replace(self.panel, series=series, notes=(*self.panel.notes, *notes))
        return replace(self, panel=panel, borders=self.borders[numbers])


def read_parts(settings: DataSettings, seed: int, processor: SeriesProcessor | None) -> Parts:
    """What settings name, cut where the held-out part begins; series without a training part are left out."""
    if settings.path.startswith(PREFIX):
        return world_parts(settings.path, seed)
    panel = read_panel(settings.path, roles_for(processor, settings), settings.gaps, choices=settings.choices)
    borders = _borders(panel, settings.valid)
    whole = Parts(panel, borders, {})
    if processor is not None:
        return whole.kept(processor.scales)
    both = zip(panel.series, borders, strict=True)
    found = [one.label for one, border in both if np.isfinite(one.target[:border]).sum() >= 2]
    return whole.kept(found) if found else whole


def _borders(panel: Panel, valid: str) -> np.ndarray:
    """Where the held-out part of each series begins: its end, from one moment on for all."""
    found = TAIL.fullmatch("tail:0.1" if valid == BY_HASH else valid)
    steps = 0
    # Times are a step apart, so that each is one tick after the one before.
    first = [int(ticks(one.times[:1], panel.step)[0]) for one in panel.series]
    last = max(start + one.observed - 1 for start, one in zip(first, panel.series, strict=True) if one.observed)
    if found is not None:
        whole = last + 1 - min(first)
        steps = int(whole * float(found[1])) if found[1][-1].isdigit() else steps_in(found[1], panel.step)
    if found is None or (not steps and not found[1][-1].isdigit()):
        raise UsageError(
            f"valid = {valid!r}: of a series the end is held out; say tail:0.1 for a part of it, or tail: and "
            f"{spans(panel.step)}"
        )
    return np.clip(last + 1 - steps - np.array(first), 0, [len(one) for one in panel.series])


def refuse_empty(parts: Parts, processor: SeriesProcessor, has_train: bool, has_valid: bool) -> None:
    """Refuse series of which no window lies on one side of the border."""
    if has_train and has_valid:
        return
    longest = int(np.argmax([len(one) for one in parts.panel.series]))
    series, border = parts.panel.series[longest], int(parts.borders[longest])
    where = stamp(series.times, min(border, len(series) - 1))
    part, need = ("training part, before", processor.history) if not has_train else ("held-out part, from", 0)
    steps = border if not has_train else series.observed - border
    raise DataError(
        f"{series.name}: the {part} {where}, is too short: {steps} steps, of which a forecast needs "
        f"{need + processor.horizon} together; give a longer series, another data.valid such as tail:0.2, or a shorter "
        f"data.history or data.horizon"
    )


def account_of(panel: Panel, data: str) -> Account:
    """What was understood of the columns; what is counted are the forecasts that there is room for."""
    roles, first = panel.roles, panel.series[0]
    lists = {"known ahead": roles.known, "read as past": roles.past or (), "static": roles.static}
    columns = {role: ", ".join(names) for role, names in lists.items() if names}
    return Account(
        data=data,
        target=first.target_name,
        columns=columns | ({"series": roles.series} if roles.series else {}),
        ignored=panel.ignored,
        unit="forecasts",
        facts={"series": len(panel.series), "steps": sum(map(len, panel.series))},
        first={"time": str(first.times[0]), first.target_name: f"{first.target[0]:g}"},
    )


def unscaled(processor: SeriesProcessor) -> tuple[str, ...]:
    """A line about series that have no MASE."""
    left = [label for label, scales in processor.scales.items() if scales.naive is None]
    period = processor.week or processor.season
    who = f" of {listed(left)}" if processor.roles.series else ""
    told = (
        f"MASE{who} is left out: the training part repeats itself exactly after {period} steps, and has no scale for it"
    )
    return (told,) if left else ()


def world_parts(spec: str, seed: int) -> Parts:
    world = from_spec(spec, seed)
    if not isinstance(world, ElectricityMarket):
        raise UsageError(f"{spec} is no world of series")
    series = world.series
    roles = Roles(None, series.target_name, series.columns, ())
    return Parts(Panel((series,), roles), np.array([world.first_valid]), dict(world.best))
