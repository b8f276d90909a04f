"""Models of the same size: the width at which a model has about so many parameters."""

from __future__ import annotations

from typing import Any

from regard.core.facts import Facts
from regard.core.registry import entry
from regard.estimate import on_meta

# Wider than any study wants; the search halves the way there.
WIDEST = 4096


def parameters(name: str, facts: Facts | int, **settings: Any) -> int:
    """How many numbers a registered model learns."""
    return sum(one.numel() for one in on_meta(entry(name).config(facts, "small", **settings)).parameters())


def width_for(name: str, facts: Facts | int, target: int, every: int = 4, **settings: Any) -> int:
    """The d_model, a multiple of `every`, that comes nearest to `target` parameters."""
    low, high = 1, WIDEST // every
    while high - low > 1:
        middle = (low + high) // 2
        if parameters(name, facts, d_model=middle * every, **settings) <= target:
            low = middle
        else:
            high = middle
    return min(
        (low * every, high * every),
        key=lambda width: abs(parameters(name, facts, d_model=width, **settings) - target),
    )
