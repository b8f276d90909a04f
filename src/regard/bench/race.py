"""Two ways to do the same work, run in turn so that a noisy machine slows both alike."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ours, peer  in `unit`; peer is None when it is not installed, both are when the benchmark failed.
    ratio       how many times better ours is: above 1 is faster, or smaller for memory.
    aim         what the ratio should reach, None where there is no aim.
    note        why there are no numbers.
    """

    name: str
    ours: float | None
    peer: float | None
    ratio: float | None
    aim: float | None
    unit: str
    note: str = ""


def race(ours: Work, peer: Work | None, repeats: int, warmups: int = 2) -> tuple[float, float | None, float | None]:
    """Median seconds of each, and the median of the ratios peer / ours taken pair by pair."""
    runners = [ours] if peer is None else [ours, peer]
    for _ in range(warmups):
        for runner in runners:
            runner()
    times: list[list[float]] = [[] for _ in runners]
    for _ in range(repeats):
        for runner, seconds in zip(runners, times, strict=True):
            start = time.perf_counter()
            runner()
            seconds.append(time.perf_counter() - start)
    ours_median = statistics.median(times[0])
    if peer is None:
        return ours_median, None, None
    ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
    return ours_median, statistics.median(times[1]), ratio


def speed_row(
    name: str, units: int, ours: Work, peer: Work | None, repeats: int, aim: float | None, unit: str = "tokens/s"
) -> Row:
    """A race told as units a second."""
    ours_seconds, peer_seconds, ratio = race(ours, peer, repeats)
    return Row(name, units / ours_seconds, None if peer_seconds is None else units / peer_seconds, ratio, aim, unit)


def ratio_of(peer: float | None, ours: float) -> float | None:
    """How many times smaller ours is; None without a peer, or where nothing was measured to divide by.

    >>> ratio_of(3.0, 2.0), ratio_of(None, 2.0), ratio_of(3.0, 0.0)
    (1.5, None, None)
    """
    return None if peer is None or ours == 0 else peer / ours


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
