"""Values of a view as plain ones, which JSON can hold."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain_values(value: Any) -> Any:
    """Arrays as lists and numbers of NumPy as Python's, at any depth."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain_values(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
