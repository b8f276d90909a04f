"""Models of the same size: the width at which a model has about so many parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regard.core.data_spec import DataSpec
from regard.core.registry import entry
from regard.errors import RegardError, UsageError
from regard.training.estimate import count_parameters, on_meta

WIDEST = 4096
# Widths around the one that the search ends at: heads allow only some of them.
NEAR, FAR = 16, 128

# A width to its count of parameters, None where a model cannot have that width.
Counted = Callable[[int], int | None]


def parameters(name: str, spec: DataSpec | int, size: str = "small", **settings: Any) -> int | None:
    """How many numbers a registered model learns; None of one that counts."""
    config = entry(name).config(spec, size, **settings)
    return None if config.counts else count_parameters(on_meta(config))


def nearest_width(counted: Counted, target: int, worth: Callable[[int, int], Any] | None = None) -> tuple[int, int]:
    """The width whose count is nearest to the target, and the count; more width is always more parameters.

    worth  what to take the smallest of among the widths nearby, (width, count), instead of the distance.
    """

    def of(width: int) -> int | None:
        try:
            return counted(width)
        except (RegardError, ValueError):
            return None

    low, high = 1, WIDEST
    while high - low > 1:
        middle = (low + high) // 2
        near = next((found for width in range(middle, middle + FAR // 2) if (found := of(width)) is not None), None)
        low, high = (middle, high) if near is not None and near <= target else (low, middle)
    for reach in (NEAR, FAR):
        widths = range(max(1, low - reach), low + reach + 2)
        around = [(width, found) for width in widths if (found := of(width)) is not None]
        if around:
            return min(around, key=lambda pair: worth(*pair) if worth else abs(pair[1] - target))
    raise UsageError(f"no width gives about {target:,} parameters; set model.d_model")


def width_for(name: str, spec: DataSpec | int, target: int, every: int = 4, **settings: Any) -> int:
    """The d_model, a multiple of `every`, that comes nearest to `target` parameters."""

    def counted(width: int) -> int | None:
        return None if width % every else parameters(name, spec, d_model=width, **settings)

    return nearest_width(counted, target)[0]
