"""Matrices for a page: exact while they are small, in eight bits a weight or as a smaller map where they are large."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

# Larger matrices go to a page in eight bits a weight, each row with a scale of its own.
MOST_EXACT = 256 * 256
# Larger ones go to a page that can ask for rows as a smaller map, in which a block keeps its largest weight.
MOST_WHOLE = 1024 * 1024


def packed(weights: np.ndarray, most: int | None = None, exact: int = MOST_EXACT) -> dict[str, Any]:
    """A matrix for a page: float32 in base64, or eight bits a weight with a scale for each row where it is large.

    {"shape": [T, S], "type": "float32", "data": ...}
    {"shape": [T, S], "type": "uint8", "data": ..., "low": [T], "high": [T]}      low + (high - low) byte / 255

    exact  of how many weights each is sent in full.
    With more than `most` weights also "block": k, and data, low and high of a map of ceil(T / k) x ceil(S / k).
    """
    matrix = np.ascontiguousarray(weights, dtype=np.float32)
    shape = list(matrix.shape)
    if most is not None and matrix.size > most:
        block = math.ceil(math.sqrt(matrix.size / most))
        return packed(by_block(matrix, block), None, exact) | {"shape": shape, "block": block}
    if matrix.size <= exact:
        return {"shape": shape, "type": "float32", "data": _base64(matrix.astype("<f4"))}
    held = np.nan_to_num(matrix)
    low, high = held.min(1, keepdims=True), held.max(1, keepdims=True)
    span = np.where(high > low, high - low, 1.0)
    bytes_ = np.round((held - low) / span * 255).astype(np.uint8)
    told = {"low": [float(f"{v:.6g}") for v in low[:, 0]], "high": [float(f"{v:.6g}") for v in high[:, 0]]}
    return {"shape": shape, "type": "uint8", "data": _base64(bytes_)} | told


def by_block(matrix: np.ndarray, size: int) -> np.ndarray:
    """The weight of each block of size x size that is largest, or farthest below zero; NaN where all are.

    >>> by_block(np.array([[1.0, 2.0, 0.0], [0.0, -3.0, np.nan]]), 2)
    array([[-3.,  0.]])
    """
    rows, columns = (range(0, count, size) for count in matrix.shape)
    # fmax and fmin leave out what is masked.
    high = np.fmax.reduceat(np.fmax.reduceat(matrix, rows, 0), columns, 1)
    low = np.fmin.reduceat(np.fmin.reduceat(matrix, rows, 0), columns, 1)
    return np.where(high >= -low, high, low)


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
