"""Which rows of a batch a process reads: every N-th from its own number on.

Rows come sorted by length, so that every N-th gives each process about as many tokens. What the whole batch has, such
as its count of targets, is known to all of them: each makes the whole on its host, and computes on its part alone.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.training.losses import counted, pairs_of


def part_of(batch: Batch, rank: int, size: int) -> Batch:
    """The rows of process `rank` of `size`. One for which there are none has the first row, not to be counted."""
    n_rows = len(batch.lengths)
    rows = torch.arange(rank, n_rows, size) if rank < n_rows else torch.zeros(1, dtype=torch.long)
    end_to_end = ("tokens", "targets") if batch.packed else ()
    cut = {name: value for name, value in vars(batch).items() if isinstance(value, Tensor) and name not in end_to_end}
    values = {name: value[rows] for name, value in cut.items()}
    if batch.packed:
        places = packed_places(batch.lengths, rows)
        values |= {"tokens": batch.tokens[:, places], "targets": batch.targets[:, places]}
    indices = [batch.indices[row] for row in rows.tolist()] if batch.indices else []
    return replace(batch, indices=indices, targets_a_pair=targets_a_pair(batch), **values)


def packed_places(lengths: Tensor, rows: Tensor) -> Tensor:
    """Where the tokens of some rows lie, of rows that lie end to end."""
    ends = lengths.cumsum(0).tolist()
    spans = [torch.arange(ends[row] - int(lengths[row]), ends[row]) for row in rows.tolist()]
    return torch.cat(spans)


def targets_a_pair(batch: Batch) -> float | None:
    """How many targets count for each pair of neighbours that do; None where they have no neighbours."""
    if batch.targets.dim() != 2:
        return None
    counts = counted(batch.targets)
    return float(counts.sum()) / max(1, int(pairs_of(counts).sum()))


def own_rows(whole: Tensor, rank: int, size: int) -> Tensor:
    """The rows of a process of what one process has, such as a carried state."""
    return whole[rank::size].clone()


def joined_rows(parts: list[Tensor]) -> Tensor:
    """The same put together again: part r holds every N-th row from r on."""
    whole = parts[0].new_empty(sum(len(part) for part in parts), *parts[0].shape[1:])
    for rank, part in enumerate(parts):
        whole[rank :: len(parts)] = part
    return whole
