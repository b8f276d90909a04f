"""Every smoothing, interpolated and backing off; `given` counts nothing, and `add_k` never backs off."""

from __future__ import annotations

from typing import get_args

from regard.ngram.smoothing import Smoothing

SMOOTHINGS: list[tuple[Smoothing, bool]] = [
    (smoothing, interpolate)
    for smoothing in get_args(Smoothing)
    for interpolate in (True, False)
    if smoothing != "given" and (interpolate or smoothing != "add_k")
]
