"""Two ways to do the same work, run in turn so that a noisy machine slows both alike."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from regard.bench.floor import Cost
from regard.bench.machine import Machine, finish

Work = Callable[[], object]
# Packages that rows stand beside where they are installed.
PEERS = ("transformers", "x_transformers", "mambapy", "ctranslate2", "kenlm")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ours, peer  in `unit`; peer is None when it is not installed, both are when the benchmark failed.
    ratio       how many times better ours is: above 1 is faster, or smaller for memory.
    aim         what the ratio should reach, None where there is no aim.
    note        why there are no numbers.
    seconds     of ours, what `operations` and `bytes` are counted for: the least that this work asks of any machine.
    floor_s     the seconds that this machine needs for them at least. share: of those it took. None without a count.
    """

    name: str
    ours: float | None
    peer: float | None
    ratio: float | None
    aim: float | None
    unit: str
    note: str = ""
    seconds: float | None = None
    operations: float | None = None
    bytes: float | None = None
    floor_s: float | None = None
    share: float | None = None

    def on(self, machine: Machine) -> Row:
        """The row with its floor on a machine, where its work is counted."""
        if self.operations is None or self.bytes is None or not self.seconds:
            return self
        floor = machine.floor(self.operations, self.bytes)
        return replace(self, floor_s=floor, share=floor / self.seconds)

    def beside(self, figure: float) -> Row:
        """What was measured beside a figure to be reached, in the unit of the row."""
        label = f"{self.name.rpartition(', beside ')[0]}, beside {figure:g} {self.unit}"
        assert self.ours is not None
        return Row(label, self.ours, figure, self.ours / figure, 1.0, self.unit)


def race(ours: Work, peer: Work | None, repeats: int, warmups: int = 2) -> tuple[float, float | None, float | None]:
    """Median seconds of each, and the median of the ratios peer / ours taken pair by pair."""
    runners = [ours] if peer is None else [ours, peer]
    for _ in range(warmups):
        for runner in runners:
            runner()
    times: list[list[float]] = [[] for _ in runners]
    for _ in range(repeats):
        for runner, seconds in zip(runners, times, strict=True):
            finish()
            start = time.perf_counter()
            runner()
            finish()
            seconds.append(time.perf_counter() - start)
    ours_median = statistics.median(times[0])
    if peer is None:
        return ours_median, None, None
    ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
    return ours_median, statistics.median(times[1]), ratio


def speed_row(
    name: str,
    units: int,
    ours: Work,
    peer: Work | None,
    repeats: int,
    aim: float | None,
    unit: str = "tokens/s",
    cost: Cost | None = None,
) -> Row:
    """A race told as units a second. cost: of one run of ours."""
    seconds, peer_seconds, ratio = race(ours, peer, repeats)
    theirs = None if peer_seconds is None else units / peer_seconds
    counted = (None, None) if cost is None else (cost.operations, cost.bytes)
    return Row(name, units / seconds, theirs, ratio, aim, unit, "", seconds, *counted)


def ratio_of(peer: float | None, ours: float) -> float | None:
    """How many times smaller ours is; None without a peer, or where nothing was measured to divide by.

    >>> ratio_of(3.0, 2.0), ratio_of(None, 2.0), ratio_of(3.0, 0.0)
    (1.5, None, None)
    """
    return None if peer is None or ours == 0 else peer / ours


def installed(package: str) -> bool:
    assert package in PEERS, package
    return importlib.util.find_spec(package) is not None


def missing() -> list[str]:
    """The peers that are not installed."""
    return [package for package in PEERS if not installed(package)]
