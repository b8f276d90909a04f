"""The next tokens of many rows at once, each row with settings of its own, without waiting for a device.

What `logits_processing` does to one row with numbers, this does to all rows with tensors: the same cuts in the same
order, of equal logits the lower token id first. How much has to be done is known from the settings alone:

    greedy  no row leaves anything to chance
    plain   some row draws, and none cuts tokens off
    likely  some row has min-p, and none top-k or top-p
    cut     some row has top-k or top-p, which need an order of the tokens

A row's token is the same whichever of these its neighbours ask for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.logits_processing import (
    CANDIDATES,
    GREEDY,
    Sampling,
    fine,
    finest,
    finest_type,
    largest,
    raw_log_probs,
)
from regard.kernels.choice import NARROW, has_triton
from regard.kernels.operators import if_built

Kind = Literal["greedy", "plain", "likely", "cut"]
# Probabilities that are added up in one piece: a sum in two storeys reads the vocabulary once.
PIECE, FEW_PIECES = 256, 16


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
        columns = torch.tensor(rows, dtype=finest_type(device), device=device).T.contiguous()[..., None]
        temperature, top_k, top_p, log_min_p, greedy = columns
        candidates = max((_candidates(row) for row in settings if row is not None), default=0)
        cuts = {name for row in settings if row is not None and not row.greedy for name in _cuts(row)}
        return cls(temperature, top_k, top_p, log_min_p, greedy > 0, candidates, frozenset(cuts))

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


def next_tokens(
    logits: Float[Tensor, "B V"], settings: RowSettings, uniform: Float[Tensor, "B"] | None, kind: Kind
) -> tuple[Int[Tensor, "B"], Float[Tensor, "B"]]:
    """A token for each row and its raw log-probability, which is NaN where the row's logits are no distribution."""
    if logits.dtype in NARROW and has_triton(logits.device):
        found = if_built("drawing", _by_kernel, logits, settings, uniform, kind)
        if found is not None:
            return found
    tokens, logits = logits.argmax(-1), fine(logits)
    if kind != "greedy":
        assert uniform is not None
        warped = (logits - logits.amax(-1, keepdim=True)) / settings.temperature.to(logits.dtype)
        if kind != "plain":
            warped = warped.masked_fill(~kept(warped, settings, kind), -math.inf)
        tokens = torch.where(settings.greedy[:, 0], tokens, drawn_from(warped, uniform))
    return tokens, raw_log_probs(logits).gather(-1, tokens[:, None])[:, 0]


def _by_kernel(logits: Tensor, settings: RowSettings, uniform: Tensor | None, kind: Kind) -> tuple[Tensor, Tensor]:
    """The same in few launches, without sorting."""
    if kind == "greedy":
        from regard.kernels.greedy_triton import greedy

        return greedy(logits)
    from regard.kernels.draw_triton import draw

    assert uniform is not None
    s = settings
    return draw(logits, (s.temperature, s.top_k, s.top_p, s.log_min_p, s.greedy), uniform, s.cuts)


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
            first = torch.arange(order.shape[-1]) < settings.top_k
            found = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, first)
            return found | (settings.top_k >= logits.shape[-1])
        found, settled = _among(logits, order, settings, has_top_k)
        if settled.all():
            return found
    return _among(logits, logits.sort(dim=-1, descending=True, stable=True).indices, settings, has_top_k)[0]


def _likely(logits: Tensor, settings: RowSettings) -> Tensor:
    """What min-p keeps."""
    return logits >= settings.log_min_p.to(logits.dtype)


def drawn_from(logits: Float[Tensor, "B V"], uniform: Float[Tensor, "B"]) -> Int[Tensor, "B"]:
    """The token at which the cumulated probability first exceeds `uniform`, of logits whose largest is 0.

    As `logits_processing.draw`, never one of probability 0; in a large vocabulary with sums of pieces first and inside
    one piece then.
    """
    (rows, width), p = logits.shape, logits.exp()
    if width <= FEW_PIECES * PIECE:
        sums = finest(p).cumsum(-1)
        return _first_above(sums, uniform.to(sums)[:, None] * sums[:, -1:])
    p = torch.nn.functional.pad(p, (0, -width % PIECE)).view(rows, -1, PIECE)
    sums = p.sum(-1, dtype=finest_type(p.device)).cumsum(-1)  # (B, V / PIECE)
    target = uniform.to(sums)[:, None] * sums[:, -1:]
    piece = _first_above(sums, target)
    inside = finest(p[torch.arange(rows, device=p.device), piece]).cumsum(-1)  # (B, PIECE)
    before = torch.nn.functional.pad(sums, (1, 0)).gather(1, piece[:, None])
    return piece * PIECE + _first_above(inside, target - before)


def _first_above(sums: Tensor, target: Tensor) -> Tensor:
    """The first place (B,) of running sums (B, n) that exceeds the target (B, 1).

    Rounding may carry a target to the total itself: then it is the place at which the total is reached. Of what are no
    numbers it is the last.
    """
    place = torch.searchsorted(sums, target, right=True)
    last = torch.searchsorted(sums, sums[:, -1:].contiguous())
    return torch.minimum(place, last)[:, 0].clamp(max=sums.shape[1] - 1)


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
    mass = finest((values - total).exp()).cumsum(-1)
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
