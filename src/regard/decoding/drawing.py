"""The next tokens of many rows at once, each row with settings of its own, without waiting for a device.

A row's token is the same whatever its neighbours ask for.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.device import wide, widest
from regard.decoding.logits_processing import Kind, RowSettings, fine, raw_log_probs, warped_logits
from regard.kernels import draw_cpu
from regard.kernels.choice import NARROW, has_triton
from regard.kernels.operators import if_built

# Probabilities that are added up in one piece: a sum in two storeys reads the vocabulary once.
PIECE, FEW_PIECES = 256, 16


def next_tokens(
    logits: Float[Tensor, "B V"], settings: RowSettings, uniform: Float[Tensor, "B"] | None, kind: Kind
) -> tuple[Int[Tensor, "B"], Float[Tensor, "B"]]:
    """A token for each row and its raw log-probability, which is NaN where the row's logits are no distribution."""
    if logits.dtype in NARROW and has_triton(logits.device):
        found = if_built("drawing", _by_kernel, logits, settings, uniform, kind)
        if found is not None:
            return found
    logits = fine(logits)  # the largest of half precision takes ten times as long on a CPU
    if draw_cpu.takes(logits):
        return _by_c(logits, settings, uniform, kind)
    tokens = logits.argmax(-1)
    if kind != "greedy":
        assert uniform is not None
        drawn = drawn_from(warped_logits(logits, settings, kind), uniform)
        tokens = torch.where(settings.greedy[:, 0], tokens, drawn)
    return tokens, raw_log_probs(logits).gather(-1, tokens[:, None])[:, 0]


def _by_c(logits: Tensor, settings: RowSettings, uniform: Tensor | None, kind: Kind) -> tuple[Tensor, Tensor]:
    """The same with fewer passes; rows that cut tokens off are drawn as elsewhere."""
    if kind in ("greedy", "plain"):
        return draw_cpu.draw(logits, settings.temperature, settings.greedy, uniform)
    assert uniform is not None
    # Of those rows the likeliest token, whose log-probability is near 0: from an unlikely one's the difference of two
    # logits would leave few digits.
    cutting = settings.cutting
    tokens, log_probs = draw_cpu.draw(logits, settings.temperature, settings.greedy | cutting, uniform)
    drawn = drawn_from(warped_logits(logits, settings, kind), uniform)
    others = torch.where(cutting[:, 0], drawn, tokens)
    first, other = (logits.gather(-1, of[:, None])[:, 0] for of in (tokens, others))
    return others, log_probs + (other - first)


def _by_kernel(logits: Tensor, settings: RowSettings, uniform: Tensor | None, kind: Kind) -> tuple[Tensor, Tensor]:
    """The same in few launches, without sorting."""
    if kind == "greedy":
        from regard.kernels.greedy_triton import greedy

        return greedy(logits)
    from regard.kernels.draw_triton import draw

    assert uniform is not None
    s = settings
    return draw(logits, (s.temperature, s.top_k, s.top_p, s.log_min_p, s.greedy), uniform, s.cuts)


def drawn_from(logits: Float[Tensor, "B V"], uniform: Float[Tensor, "B"]) -> Int[Tensor, "B"]:
    """The token at which the cumulated probability first exceeds `uniform`, in [0, 1). Never one of probability 0.

    Of logits whose largest is 0, or of log-probabilities; in a large vocabulary with sums of pieces first and inside
    one piece then.
    """
    (rows, width), p = logits.shape, logits.exp()
    if width <= FEW_PIECES * PIECE:
        sums = wide(p).cumsum(-1)
        return _first_above(sums, uniform.to(sums)[:, None] * sums[:, -1:])
    p = torch.nn.functional.pad(p, (0, -width % PIECE)).view(rows, -1, PIECE)
    sums = p.sum(-1, dtype=widest(p.device)).cumsum(-1)  # (B, V / PIECE)
    target = uniform.to(sums)[:, None] * sums[:, -1:]
    piece = _first_above(sums, target)
    inside = wide(p[torch.arange(rows, device=p.device), piece]).cumsum(-1)  # (B, PIECE)
    before = torch.nn.functional.pad(sums, (1, 0)).gather(1, piece[:, None])
    place = piece * PIECE + _first_above(inside, target - before)
    return place.clamp(max=width - 1)  # of what are no numbers the last of the last piece, which may not be there


def _first_above(sums: Tensor, target: Tensor) -> Tensor:
    """The first place (B,) of running sums (B, n) that exceeds the target (B, 1).

    Rounding may carry a target to the total itself: then it is the place at which the total is reached. Of what are no
    numbers it is the last.
    """
    place = torch.searchsorted(sums, target, right=True)
    last = torch.searchsorted(sums, sums[:, -1:].contiguous())
    return torch.minimum(place, last)[:, 0].clamp(max=sums.shape[1] - 1)
