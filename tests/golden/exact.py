"""Golden numbers as float64 tensors, and the comparison that the golden tests share."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def load(name: str) -> Any:
    """The golden file `name`.json."""
    return json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))


def tensor(rows: Any) -> Tensor:
    """Nested lists of numbers, of fractions written as strings, and of None for minus infinity, in float64."""
    return torch.tensor(_numbers(rows), dtype=torch.float64)


def same(got: Tensor, rows: Any, tolerance: float = 1e-12) -> None:
    """`got` is in float64 and equals the golden `rows`."""
    torch.testing.assert_close(got.detach(), rows if isinstance(rows, Tensor) else tensor(rows), rtol=0, atol=tolerance)


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    if value is None:
        return float("-inf")
    return float(Fraction(value)) if isinstance(value, str) else float(value)
