"""Counts, gauges and histograms of a server, in the text form that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
KIND = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """How many values were at most each bound."""

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.sum = 0.0

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(SECONDS, value)] += times
        self.sum += value * times

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip(SECONDS, self.counts, strict=False):
            total += count
            yield f'{name}_bucket{{le="{bound:g}"}} {total}'
        yield f'{name}_bucket{{le="+Inf"}} {sum(self.counts)}'
        yield f"{name}_sum {self.sum:.6f}"
        yield f"{name}_count {sum(self.counts)}"


class Metrics:
    """What has happened since the server began."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.tokens: Counter[str] = Counter()  # prompt, completion
        self.events: Counter[str] = Counter()  # cancelled, timeout, refused, restarts, slow
        self.first_token, self.between_tokens, self.whole = Histogram(), Histogram(), Histogram()
        self.open = 0

    def text(self, state: Mapping[str, Mapping[str, int]], ready: bool) -> str:
        """All of it. state: of the runs in the engine."""
        return "\n".join(self._lines(state, ready)) + "\n"

    def _lines(self, state: Mapping[str, Any], ready: bool) -> Iterator[str]:
        yield from _family("regard_requests_total", "counter", "Requests by path and status.")
        for (path, status), count in sorted(self.requests.items()):
            yield f'regard_requests_total{{path="{path}",status="{status}"}} {count}'
        yield from _family("regard_tokens_total", "counter", "Tokens read and written.")
        for kind in ("prompt", "completion"):
            yield f'regard_tokens_total{{kind="{kind}"}} {self.tokens[kind]}'
        yield from _family("regard_events_total", "counter", "Requests cancelled, refused or cut; restarts.")
        for kind in ("cancelled", "refused", "timeout", "limited", "restarts"):
            yield f'regard_events_total{{kind="{kind}"}} {self.events[kind]}'
        yield from _family("regard_requests_open", "gauge", "Requests underway.")
        yield f"regard_requests_open {self.open}"
        yield from _family("regard_ready", "gauge", "Whether the engine answers.")
        yield f"regard_ready {int(ready)}"
        for name in ("slots", "taken", "waiting", "prefix_tokens"):
            yield from _family(f"regard_engine_{name}", "gauge", f"{name} of each run in memory.")
            for run, told in sorted(state.items()):
                yield f'regard_engine_{name}{{model="{_escaped(run)}"}} {told.get(name, 0)}'
        for name, about, histogram in (
            ("regard_time_to_first_token_seconds", "From request to first token.", self.first_token),
            ("regard_time_between_tokens_seconds", "From token to token of one text.", self.between_tokens),
            ("regard_request_seconds", "Of whole requests.", self.whole),
        ):
            yield from _family(name, "histogram", about)
            yield from histogram.lines(name)


def _family(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
