"""From next-token logits to what a token is drawn from: temperature, top-k, top-p and min-p.

Two distributions are kept apart by name. The raw one is the model's own, softmax(logits): every log-probability that
is reported is raw. The warped one is what a token is drawn from. The warps are applied in this order, each to what
the one before it left: temperature, top-k, top-p, min-p.

Of equal logits the lower token id comes first, everywhere, so that top_k=1 and temperature=0 are the same as greedy.

Many rows are processed at once, each with settings of its own, without waiting for a device. How much has to be done is
known from the settings alone:

    greedy  no row leaves anything to chance
    plain   some row draws, and none cuts tokens off
    likely  some row has min-p, and none top-k or top-p
    cut     some row has top-k or top-p, which need an order of the tokens
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.device import wide, widest
from regard.errors import UsageError

Kind = Literal["greedy", "plain", "likely", "cut"]
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
        warm = isinstance(self.temperature, Real) and SMALLEST_TEMPERATURE <= self.temperature < math.inf
        if self.temperature != 0 and not warm:
            raise UsageError(
                f"temperature must be 0 (greedy) or at least {SMALLEST_TEMPERATURE:g}, found {self.temperature}"
            )
        if self.top_k is not None and (not isinstance(self.top_k, int) or self.top_k < 1):
            raise UsageError(f"top_k must be a whole number of at least 1, found {self.top_k}")
        if not (isinstance(self.top_p, Real) and 0 < self.top_p <= 1):
            raise UsageError(f"top_p must lie in (0, 1], found {self.top_p}")
        if not (isinstance(self.min_p, Real) and 0 <= self.min_p <= 1):
            raise UsageError(f"min_p must lie in [0, 1], found {self.min_p}")

    @property
    def greedy(self) -> bool:
        """Whether nothing is left to chance."""
        return self.temperature == 0 or self.top_k == 1


GREEDY = Sampling(temperature=0.0)


@dataclass(frozen=True)
class RowSettings:
    """Settings of B rows as the device knows them, (B, 1) each; a setting that is off is one that cuts nothing.

    log_min_p   minus infinity keeps all.
    candidates  how many of the largest logits are likely to hold all that top-k and top-p keep.
    cuts        names of the settings that cut anything off in some row. Both are known to the host.
    """

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    log_min_p: Tensor
    greedy: Tensor
    candidates: int = 0
    cuts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Sequence[Sampling | None], device: torch.device) -> RowSettings:
        """None stands for a row that nobody uses."""
        rows = [_numbers(row or GREEDY) for row in settings]
        columns = torch.tensor(rows, dtype=widest(device), device=device).T.contiguous()[..., None]
        temperature, top_k, top_p, log_min_p, greedy = columns
        candidates = max((_candidates(row) for row in settings if row is not None), default=0)
        cuts = {name for row in settings if row is not None and not row.greedy for name in _cuts(row)}
        return cls(temperature, top_k, top_p, log_min_p, greedy > 0, candidates, frozenset(cuts))

    @property
    def cutting(self) -> Tensor:
        """(B, 1) whether a row cuts tokens off."""
        cuts = (self.top_k < math.inf) | (self.top_p < 1) | (self.log_min_p > -math.inf)
        return cuts & ~self.greedy

    def taking(self, other: RowSettings) -> RowSettings:
        """The settings of others in these tensors, written in place."""
        for name in ("temperature", "top_k", "top_p", "log_min_p", "greedy"):
            getattr(self, name).copy_(getattr(other, name))
        return dataclasses.replace(self, candidates=other.candidates, cuts=other.cuts)


def kind_of(settings: Sequence[Sampling | None]) -> Kind:
    """How much has to be done for rows with these settings."""
    drawn = [row for row in settings if row is not None and not row.greedy]
    if not drawn:
        return "greedy"
    cuts = {name for row in drawn for name in _cuts(row)}
    return "plain" if not cuts else "likely" if cuts == {"min_p"} else "cut"


def raw_log_probs(logits: Float[Tensor, "... V"]) -> Float[Tensor, "... V"]:
    """log softmax(logits): the model's own distribution, in float32 or finer."""
    return fine(logits).log_softmax(-1)


def warped_log_probs(logits: Float[Tensor, "... V"], settings: Sampling) -> Float[Tensor, "... V"]:
    """The distribution that tokens are drawn from; minus infinity for a token that was cut off."""
    rows = fine(logits).reshape(-1, logits.shape[-1])
    if settings.greedy:
        others = torch.ones_like(rows, dtype=torch.bool).scatter(-1, rows.argmax(-1, keepdim=True), False)
        warped = rows.masked_fill(others, -math.inf)
    else:
        warped = warped_logits(rows, RowSettings.of([settings], rows.device), kind_of([settings]))
    return warped.log_softmax(-1).view(logits.shape)


def warped_logits(logits: Float[Tensor, "B V"], settings: RowSettings, kind: Kind) -> Float[Tensor, "B V"]:
    """Logits that the temperature has divided, the largest 0; minus infinity for a token that was cut off.

    settings  of each row, or one for all. A greedy row is left as it is.
    """
    # Less the largest logit, so that a low temperature cannot overflow.
    warped = (logits - logits.amax(-1, keepdim=True)) / settings.temperature.to(logits.dtype)
    return warped if kind == "plain" else warped.masked_fill(~kept(warped, settings, kind), -math.inf)


def kept(logits: Float[Tensor, "B V"], settings: RowSettings, kind: Kind = "cut") -> Bool[Tensor, "B V"]:
    """Which tokens top-k, top-p and min-p leave, of logits whose largest is 0 and which the temperature has divided."""
    if kind == "likely":
        return _likely(logits, settings)
    if logits.device.type != "cpu":
        order = logits.sort(dim=-1, descending=True, stable=True).indices
        return _among(logits, order, settings)[0] & _likely(logits, settings)
    found = _kept_on_cpu(logits, settings)
    return found & _likely(logits, settings) if "min_p" in settings.cuts else found


def _kept_on_cpu(logits: Tensor, settings: RowSettings) -> Tensor:
    """Where looking at a number costs nothing: no more is put in order than is needed."""
    has_top_k = "top_k" in settings.cuts
    if settings.candidates < logits.shape[-1]:
        order = largest(logits, settings.candidates)
        if "top_p" not in settings.cuts:
            first = (torch.arange(order.shape[-1]) < settings.top_k).expand_as(order)
            found = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, first)
            return found | (settings.top_k >= logits.shape[-1])
        found, settled = _among(logits, order, settings, has_top_k)
        if settled.all():
            return found
    return _among(logits, logits.sort(dim=-1, descending=True, stable=True).indices, settings, has_top_k)[0]


def _likely(logits: Tensor, settings: RowSettings) -> Tensor:
    """What min-p keeps."""
    return logits >= settings.log_min_p.to(logits.dtype)


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


def _among_largest(values: Tensor, k: int) -> Tensor:
    """Boolean, True at exactly k values of each row; what is no number is the least."""
    first = values.topk(k).values
    if first[..., 0].isnan().any():
        return _among_largest(values.masked_fill(values.isnan(), -math.inf), k)
    threshold = first[..., -1:]
    above, level = values > threshold, values == threshold
    room = k - above.sum(-1, keepdim=True)
    return above | (level & (level.cumsum(-1) <= room))


def _among(logits: Tensor, order: Tensor, settings: RowSettings, has_top_k: bool = True) -> tuple[Tensor, Tensor]:
    """What top-k and top-p keep, if it is among the largest logits, whose indices `order` (B, C) are; (B, V).

    And whether that is so, (B,): a row is settled that cuts nothing off or whose last kept token is among them.
    """
    width, values = logits.shape[-1], logits.gather(-1, order)
    total, by_p = logits.logsumexp(-1, keepdim=True), settings.top_p < 1
    in_k = by_k = None
    if has_top_k:
        by_k = settings.top_k < width
        in_k = torch.arange(order.shape[-1], device=logits.device) < settings.top_k
        values = values.masked_fill(~in_k, -math.inf)
        total = torch.where(by_k, values.logsumexp(-1, keepdim=True), total)
    mass = wide((values - total).exp()).cumsum(-1)
    before = torch.cat([torch.zeros_like(mass[:, :1]), mass[:, :-1]], -1)
    keeps, settled = before < settings.top_p, ~by_p | (mass[:, -1:] >= settings.top_p)
    if in_k is not None and by_k is not None:
        keeps = in_k & (~by_p | keeps)
        settled = torch.where(by_k, settings.top_k <= order.shape[-1], settled)
    found = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, keeps)
    return found | (~by_p if by_k is None else ~(by_k | by_p)), settled[:, 0]


def _numbers(row: Sampling) -> tuple[float, ...]:
    if row.greedy:
        return 1.0, math.inf, 1.0, -math.inf, 1.0
    top_k = math.inf if row.top_k is None else float(row.top_k)
    return row.temperature, top_k, row.top_p, math.log(row.min_p) if row.min_p else -math.inf, 0.0


def _cuts(row: Sampling) -> Iterator[str]:
    """Settings of a row that cut tokens off."""
    for name, cuts in (("top_k", row.top_k is not None), ("top_p", row.top_p < 1), ("min_p", row.min_p > 0)):
        if cuts:
            yield name


def _candidates(row: Sampling) -> int:
    if row.greedy:
        return 0
    return row.top_k if row.top_k is not None else CANDIDATES if row.top_p < 1 else 0


def fine(logits: Tensor) -> Tensor:
    """Float32 at least: in half precision a sum over a vocabulary is no sum."""
    return logits if logits.dtype == torch.float64 else logits.float()
