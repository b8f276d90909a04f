"""Scaling of numbers by their median and quartiles, which a few huge prices cannot move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.core.config import decode
from regard.errors import DataError, UsageError

# The quartiles of a normal distribution lie this many standard deviations apart.
QUARTILES_PER_DEVIATION = 1.3489795003921634


@dataclass(frozen=True, eq=False)
class Scaler:
    """z = (x - centre) / scale for each column, or asinh of it, which treats spikes as a logarithm would.

    Asinh for prices: Uniejewski, Weron, Ziel 2018, Variance stabilizing transformations for electricity spot price
    forecasting. Fit it on the training part alone.
    """

    centre: np.ndarray
    scale: np.ndarray
    asinh: bool = False

    @classmethod
    def fit(cls, values: np.ndarray, *, asinh: bool = False) -> Scaler:
        """The scaler of (n,) or (n, C) values: median, and quartile distance as the deviation of a normal distribution.

        A column whose quartiles are equal is scaled by its standard deviation, and one that never changes by 1.
        """
        if not len(values) or not np.isfinite(values).all():
            raise DataError("a scaler needs values, all of them finite: fill the gaps first")
        low, centre, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
        spread = (high - low) / QUARTILES_PER_DEVIATION
        spread = np.where(spread > 0, spread, np.std(values, axis=0))
        return cls(centre, np.where(spread > 0, spread, 1.0), asinh)

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Values of any leading shape, scaled."""
        scaled = (values - self.centre) / self.scale
        return np.arcsinh(scaled) if self.asinh else scaled

    def invert(self, scaled: np.ndarray) -> np.ndarray:
        """The values that `apply` made these from."""
        return (np.sinh(scaled) if self.asinh else scaled) * self.scale + self.centre

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON, from which `from_dict` makes the same scaler."""
        return {"centre": self.centre.tolist(), "scale": self.scale.tolist(), "asinh": self.asinh}

    @classmethod
    def from_dict(cls, facts: Any, shape: tuple[int, ...] | None = None, where: str = "scaler") -> Scaler:
        """The scaler that `to_dict` told. shape: of its numbers, where it is known. where: named in errors."""
        if not isinstance(facts, dict) or not facts.keys() >= {"centre", "scale", "asinh"}:
            raise UsageError(f"{where}: expected an object with centre, scale and asinh")
        centre, scale = (_numbers(facts[key], shape, f"{where}.{key}") for key in ("centre", "scale"))
        if not (scale > 0).all():
            raise UsageError(f"{where}.scale: expected numbers above 0")
        return cls(centre, scale, decode(facts["asinh"], bool, f"{where}.asinh"))


def _numbers(value: Any, shape: tuple[int, ...] | None, where: str) -> np.ndarray:
    """A number or a list of them, all finite."""
    listed = value if isinstance(value, list) else [value]
    found = np.array([decode(part, float, where) for part in listed], dtype=np.float64)
    found = found if isinstance(value, list) else found[0]
    if not np.isfinite(found).all() or (shape is not None and found.shape != shape):
        raise UsageError(f"{where}: expected {'a number' if not shape else f'{shape[0]} numbers'}, all of them finite")
    return np.asarray(found)
