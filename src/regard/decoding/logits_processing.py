"""From next-token logits to one token: temperature, top-k, top-p and min-p.

Two distributions are kept apart by name. The raw one is the model's own, softmax(logits): every log-probability that
is reported is raw. The warped one is what a token is drawn from. The warps are applied in this order, each to what
the one before it left: temperature, top-k, top-p, min-p.

Of equal logits the lower token id comes first, everywhere, so that top_k=1 and temperature=0 are the same as greedy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import UsageError

# Sorting 50,000 logits takes 4.0 ms on one core, finding the 1,024 largest 0.5 ms; a nucleus is seldom wider.
CANDIDATES = 1024
SMALLEST_TEMPERATURE = 1e-6
# So few values are seldom equal, and without equal ones there is no order to restore among them.
FEW = 64


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    temperature  logits are divided by it; 0 is greedy.
    top_k        keep the k most probable tokens; None keeps all.
    top_p        keep the smallest set of most probable tokens that holds this mass; 1 keeps all.
    min_p        keep tokens at least this times as probable as the best one; 0 keeps all.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        warm = SMALLEST_TEMPERATURE <= self.temperature < math.inf
        if self.temperature != 0 and not warm:
            raise UsageError(
                f"temperature must be 0 (greedy) or at least {SMALLEST_TEMPERATURE:g}, found {self.temperature}"
            )
        if self.top_k is not None and (not isinstance(self.top_k, int) or self.top_k < 1):
            raise UsageError(f"top_k must be a whole number of at least 1, found {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top_p must lie in (0, 1], found {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise UsageError(f"min_p must lie in [0, 1], found {self.min_p}")

    @property
    def greedy(self) -> bool:
        """Whether nothing is left to chance."""
        return self.temperature == 0 or self.top_k == 1


GREEDY = Sampling(temperature=0.0)


def raw_log_probs(logits: Float[Tensor, "... V"]) -> Float[Tensor, "... V"]:
    """log softmax(logits): the model's own distribution, in float32 or finer."""
    return fine(logits).log_softmax(-1)


def warped_log_probs(logits: Float[Tensor, "... V"], settings: Sampling) -> Float[Tensor, "... V"]:
    """The distribution that tokens are drawn from; minus infinity for a token that was cut off."""
    logits = with_temperature(fine(logits), settings.temperature)
    if settings.top_k is not None:
        logits = with_top_k(logits, settings.top_k)
    return with_min_p(with_top_p(logits, settings.top_p), settings.min_p).log_softmax(-1)


def with_temperature(logits: Float[Tensor, "... V"], temperature: float) -> Float[Tensor, "... V"]:
    """logits / temperature; at 0 only the largest logit is left."""
    if temperature == 0:
        return with_top_k(logits, 1)
    # Less the largest logit, so that a low temperature cannot overflow.
    return (logits - logits.amax(-1, keepdim=True)) / temperature


def with_top_k(logits: Float[Tensor, "... V"], k: int) -> Float[Tensor, "... V"]:
    """The k largest logits; the others minus infinity."""
    return logits if k >= logits.shape[-1] else logits.masked_fill(~_among_largest(logits, k), -math.inf)


def with_top_p(logits: Float[Tensor, "... V"], p: float) -> Float[Tensor, "... V"]:
    """The fewest largest logits whose probability reaches p; the others minus infinity (Holtzman et al. 2020)."""
    if p == 1:
        return logits
    width = logits.shape[-1]
    order, mass = _cumulated(logits, min(width, CANDIDATES))
    if order.shape[-1] < width and (mass[..., -1] < p).any():
        order, mass = _cumulated(logits, width)
    before = torch.cat([torch.zeros_like(mass[..., :1]), mass[..., :-1]], -1)
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)
    return logits.masked_fill(~kept, -math.inf)


def with_min_p(logits: Float[Tensor, "... V"], ratio: float) -> Float[Tensor, "... V"]:
    """The logits whose probability is at least `ratio` times the best one's; the others minus infinity."""
    if ratio == 0:
        return logits
    return logits.masked_fill(logits < logits.amax(-1, keepdim=True) + math.log(ratio), -math.inf)


def largest(values: Float[Tensor, "... V"], k: int) -> Int[Tensor, "... k"]:
    """Indices of the k largest values, largest first; of equal values the lower index first."""
    if k > values.shape[-1] // 4:
        return values.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    if k <= FEW:
        first = values.topk(k + 1)
        if not (first.values[..., 1:] == first.values[..., :-1]).any():
            return first.indices[..., :k]
    index = _among_largest(values, k).nonzero()[:, -1].reshape(*values.shape[:-1], k)
    order = values.gather(-1, index).sort(dim=-1, descending=True, stable=True).indices
    return index.gather(-1, order)


def draw(log_probs: Float[Tensor, "B V"], uniform: Float[Tensor, "B"]) -> Int[Tensor, "B"]:
    """The token at which the cumulated probability first exceeds `uniform`, in [0, 1). Never one of probability 0."""
    cumulated = finest(log_probs.exp()).cumsum(-1)
    total = cumulated[:, -1:].contiguous()
    index = torch.searchsorted(cumulated, uniform.to(total)[:, None] * total, right=True)
    # Rounding may carry a uniform number next to 1 to the total itself.
    last = torch.searchsorted(cumulated, total)
    return torch.minimum(index, last)[:, 0]


def _among_largest(values: Tensor, k: int) -> Tensor:
    """Boolean, True at exactly k values of each row."""
    threshold = values.topk(k).values[..., -1:]
    above, level = values > threshold, values == threshold
    room = k - above.sum(-1, keepdim=True)
    return above | (level & (level.cumsum(-1) <= room))


def _cumulated(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest logits' indices and the probability cumulated over them."""
    order = largest(logits, k)
    log_total = logits.logsumexp(-1, keepdim=True)
    return order, finest((logits.gather(-1, order) - log_total).exp()).cumsum(-1)


def fine(logits: Tensor) -> Tensor:
    """Float32 at least: in half precision a sum over a vocabulary is no sum."""
    return logits if logits.dtype == torch.float64 else logits.float()


def finest(values: Tensor) -> Tensor:
    """Float64 where the device has it: a long sum of small probabilities drifts in float32."""
    return values.to(finest_type(values.device))


def finest_type(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64
