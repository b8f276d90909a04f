"""Eight bits a number: each table of values cut down to 256, evenly spaced in their logarithms.

A step is a few per cent, and the value of each is the mean of the numbers it stands for, so that errors cancel in a
sum; 0 and the largest number, the 1 of a context that saw nothing among them, are kept. Probabilities then sum to 1
only about: what it costs is measured when a model is fitted, and printed.
"""

from __future__ import annotations

import torch

from regard.ngram.level import Level, Values
from regard.ngram.table import NgramTable

BINS = 256


def quantise(table: NgramTable) -> None:
    """Replace the values of every order above 1: words keep theirs, being few."""
    for order in range(2, table.order + 1):
        level = table.level(order)
        table.levels[order - 1] = Level(level.keys, _binned(level.alpha), _binned(level.gamma), table.vocab_size)


def _binned(values: Values) -> Values:
    """The same numbers rounded to at most 256 different ones."""
    if len(values.table) <= BINS:
        return Values(values.codes, values.table)
    logs = values.table.log()
    low, high = logs[values.table > 0].min(), logs.max()
    # The first step is for zeros, the last for the largest number.
    step = 1 + ((logs.clamp(min=low) - low) / (high - low) * (BINS - 2)).long().clamp(max=BINS - 3)
    step[values.table == 0] = 0
    step[values.table == values.table.max()] = BINS - 1
    entries = values.entry(slice(None))
    uses = torch.bincount(entries, minlength=len(values.table)).double()
    mass = torch.zeros(BINS, dtype=torch.float64).index_add_(0, step, uses)
    total = torch.zeros(BINS, dtype=torch.float64).index_add_(0, step, uses * values.table)
    return Values(step[entries].to(torch.uint8), total / mass.clamp(min=1))
