"""Speed and memory, always as a ratio to a peer measured in the same run. A benchmark is not a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from regard.bench.race import Row
from regard.errors import UsageError, nearest


def run(names: Iterable[str] = (), repeats: int = 5) -> list[Row]:
    """The rows of the named benchmarks, or of all. A peer that is not installed makes a row without a ratio."""
    table = benchmarks()
    chosen = list(names) or list(table)
    for name in chosen:
        if name not in table:
            raise UsageError(f"unknown benchmark {name!r}{nearest(name, table)}")
    return [row for name in chosen for row in table[name](repeats)]


def benchmarks() -> dict[str, Callable[[int], list[Row]]]:
    """Every benchmark by name."""
    from regard.bench import generation, memory, step, storage

    return {
        "gpt": step.gpt,
        "lstm": step.lstm,
        "vocabulary": step.vocabulary,
        "scan": step.scan,
        "generate": generation.generate,
        "constant": generation.constant_cost,
        "attention-memory": memory.attention,
        "scan-memory": memory.scan,
        "checkpoint": storage.checkpoint,
        "overhead": storage.overhead,
    }
