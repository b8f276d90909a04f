"""Learning rate as a pure function of the step and of the budget's progress, so that a resume needs nothing.

    rate = lr * min(1, ramp) * decay

Glossary
p     progress of the budget, 0 to 1
w     warm-up; below 1 a part of the budget, from 1 on a count of steps
ramp  p / w, or (step + 1) / w
q     progress after the warm-up, (p - w) / (1 - w) for a part, p for a count
m     the last rate as a part of the first
"""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["cosine", "linear", "constant", "inverse_root"]


def factor(schedule: Schedule, *, step: int, progress: float, warmup: float, floor: float = 0.0) -> float:
    """What `lr` is multiplied with at a step, counted from 0.

    cosine        m + (1 - m) (1 + cos(pi q)) / 2                   Loshchilov and Hutter 2017
    linear        m + (1 - m) (1 - q)
    constant      1
    inverse_root  1 / sqrt(ramp) after the warm-up, with the peak at its end: with lr = 1 / sqrt(d_model * warmup)
                  this is d_model^-0.5 * min(s^-0.5, s * warmup^-1.5), s = step + 1   Vaswani et al. 2017, 5.3
    """
    counted = warmup >= 1
    ramp = math.inf if warmup == 0 else (step + 1) / warmup if counted else progress / warmup
    if schedule == "inverse_root" and ramp > 1 and warmup > 0:
        return max(floor, 1 / math.sqrt(ramp))
    q = progress if counted else min(1.0, max(0.0, (progress - warmup) / (1 - warmup)))
    if schedule == "cosine":
        decay = floor + (1 - floor) * (1 + math.cos(math.pi * q)) / 2
    elif schedule == "linear":
        decay = floor + (1 - floor) * (1 - q)
    else:
        decay = 1.0
    return min(1.0, ramp) * decay
