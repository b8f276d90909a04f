"""What a beam's ranking adds to probability: a text's length, and how much of its source it has attended to.

    score(Y) = log p(Y) / lp(|Y|) + cp(X; Y)      Wu et al. 2016, equation 14

    gnmt   lp = ((5 + |Y|) / (5 + 1))^alpha
    power  lp = |Y|^alpha
    none   lp = 1

    cp = beta * sum_i log(min(sum_j p_ij, 1))     p_ij the attention of target token j to source token i

Glossary
lp  length penalty: the larger alpha, the more a long text is favoured
cp  coverage penalty: 0 when every source token got a whole unit of attention, negative otherwise
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor

from regard.core.device import wide
from regard.errors import UsageError, nearest

PenaltyName = Literal["gnmt", "power", "none"]
# Attention may underflow to 0. log 0 would make all texts that miss one token equally bad, however much else they miss.
LEAST_MASS = 1e-38


@dataclass(frozen=True)
class LengthPenalty:
    """lp(|Y|), by which the log-probability of a text is divided."""

    name: PenaltyName = "none"
    alpha: float = 0.6

    def __post_init__(self) -> None:
        if self.name not in get_args(PenaltyName):
            raise UsageError(f"unknown length_penalty {self.name!r}{nearest(str(self.name), get_args(PenaltyName))}")
        if not 0 <= self.alpha < float("inf"):
            raise UsageError(f"alpha must be 0 or positive, found {self.alpha}")

    def __call__(self, length: int) -> float:
        if self.name == "gnmt":
            return ((5 + length) / (5 + 1)) ** self.alpha
        return float(length) ** self.alpha if self.name == "power" else 1.0


@dataclass(frozen=True)
class CoveragePenalty:
    """cp(X; Y), which is added to the score of a text. Rows of attention are target tokens, columns the source's."""

    beta: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.beta < float("inf"):
            raise UsageError(f"beta must be 0 or positive, found {self.beta}")

    def __call__(self, attention: Float[Tensor, "T S"]) -> float:
        mass = wide(attention).sum(0).clamp(LEAST_MASS, 1)
        return self.beta * float(mass.log().sum())


NO_PENALTY = LengthPenalty()
