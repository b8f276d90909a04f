"""Speed and memory, always as a ratio to a peer measured in the same run. A benchmark is not a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from regard.bench.race import Row
from regard.errors import RegardError, UsageError, nearest


def run(names: Iterable[str] = (), repeats: int = 5, data: str | None = None) -> Iterator[Row]:
    """The rows of the named benchmarks, or of all, as they come. `data`: a text for those that count one.

    A peer that is not installed makes a row without a ratio, a benchmark that fails one with the reason.
    """
    table = benchmarks(data)
    chosen = list(names) or list(table)
    for name in chosen:
        if name not in table:
            raise UsageError(f"unknown benchmark {name!r}{nearest(name, table)}")
    return (row for name in chosen for row in _rows_or_reason(name, table[name], repeats))


def _rows_or_reason(name: str, benchmark: Callable[[int], list[Row]], repeats: int) -> list[Row]:
    """Minutes of other rows must not be lost to one benchmark, whatever happened to it."""
    try:
        return benchmark(repeats)
    except Exception as error:
        reason = str(error) if isinstance(error, RegardError) else f"{type(error).__name__}: {error}"
        return [Row(name, None, None, None, None, "", note=reason)]


def benchmarks(data: str | None = None) -> dict[str, Callable[[int], list[Row]]]:
    """Every benchmark by name."""
    from regard.bench import comparison, generation, memory, ngram, seq2seq, step, storage

    return {
        "gpt": step.gpt,
        "lstm": step.lstm,
        "vocabulary": step.vocabulary,
        "scan": step.scan,
        "seq2seq": seq2seq.seq2seq,
        "generate": generation.generate,
        "constant": generation.constant_cost,
        "attention-memory": memory.attention,
        "scan-memory": memory.scan,
        "checkpoint": storage.checkpoint,
        "overhead": storage.overhead,
        "compare": comparison.comparison,
        "ngram": partial(ngram.ngram, data=data),
    }
