"""Speed and memory, always as a ratio to a peer measured in the same run, and as a share of what the machine could do.

A benchmark is not a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, UsageError, nearest

if TYPE_CHECKING:
    import torch

    from regard.bench.machine import Machine
    from regard.bench.race import Row

Benchmark = Callable[[int], "list[Row]"]


@dataclass
class Measured:
    """Rows, and the machine whose floors they have; None where no row has one."""

    repeats: int
    machine: Machine | None = None
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row, device: torch.device) -> None:
        """One more row, of work on a device."""
        from regard.bench.machine import measured

        if row.operations is not None:
            self.machine = self.machine or measured(device)
            row = replace(row, aim=row.aim if device.type == "cpu" else None)
        self.rows.append(row)

    def finish(self, device: torch.device) -> None:
        """Give the rows their floors."""
        from regard.bench.machine import measured

        if self.machine is not None:
            machine = self.machine = self.machine.best(measured(device))
            self.rows = [row.on(machine) for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        machine = None if self.machine is None else vars(self.machine)
        return {"repeats": self.repeats, "machine": machine, "rows": [vars(row) for row in self.rows]}


def run(
    names: Iterable[str],
    repeats: int,
    device: torch.device,
    data: str | None = None,
    seen: Callable[[Row], None] | None = None,
) -> Measured:
    """The named benchmarks, or all, each row told to `seen` as it comes. `data`: a text for those that count one.

    A peer that is not installed makes a row without a ratio, a benchmark that fails one with the reason. Aims are those
    of a CPU. Benchmarks of the host's memory, disk and counting are of the host whatever the device. The machine is
    measured before the first row that has a floor and after the last one: on a busy one the higher ceiling is nearer.
    """
    table = benchmarks(data, device)
    chosen = list(names) or list(table)
    for name in chosen:
        if name not in table:
            raise UsageError(f"unknown benchmark {name!r}{nearest(name, table)}")
    found = Measured(repeats)
    for name in chosen:
        for row in _rows_or_reason(name, table[name], repeats):
            found.add(row, device)
            if seen is not None:
                seen(row)
    found.finish(device)
    return found


def _rows_or_reason(name: str, benchmark: Benchmark, repeats: int) -> list[Row]:
    """Minutes of other rows must not be lost to one benchmark, whatever happened to it."""
    from regard.bench.race import Row

    try:
        return benchmark(repeats)
    except Exception as error:
        reason = str(error) if isinstance(error, RegardError) else f"{type(error).__name__}: {error}"
        return [Row(name, None, None, None, None, "", note=reason)]


def benchmarks(data: str | None, device: torch.device) -> dict[str, Benchmark]:
    """Every benchmark by name."""
    from regard.bench import comparison, converted, generation, memory, ngram, seq2seq, step, storage

    here = {"device": device}
    return {
        "gpt": partial(step.gpt, **here),
        "lstm": partial(step.lstm, **here),
        "vocabulary": partial(step.vocabulary, **here),
        "scan": partial(step.scan, **here),
        "seq2seq": partial(seq2seq.seq2seq, **here),
        "translation": partial(seq2seq.translation, **here),
        "generate": partial(generation.generate, **here),
        "ctranslate2": partial(converted.ctranslate2, **here),
        "constant": partial(generation.constant_cost, **here),
        "attention-memory": memory.attention,
        "scan-memory": memory.scan,
        "checkpoint": storage.checkpoint,
        "overhead": storage.overhead,
        "compare": comparison.comparison,
        "ngram": partial(ngram.ngram, data=data),
    }
