"""SSD's three equal forms, readable, on any device and in any number type. Letters and equations: mixers/ssd.py."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.device import wide


def ssd_recurrent(x: Tensor, decay: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Token by token, in the number type of h.

    x (B, T, H, P) already times dt, decay = dt A (B, T, H), b and c (B, T, G, N), h (B, H, P, N).
    """
    share, dtype = x.shape[2] // b.shape[2], x.dtype
    x, decay, b, c = (t.to(h.dtype) for t in (x, decay, b, c))
    b, c = b.repeat_interleave(share, 2), c.repeat_interleave(share, 2)  # (B, T, H, N)
    outputs = []
    for t in range(x.shape[1]):
        h = decay[:, t].exp()[..., None, None] * h + x[:, t, :, :, None] * b[:, t, :, None]
        outputs.append((h @ c[:, t, ..., None])[..., 0])
    return torch.stack(outputs, 1).to(dtype), h


def ssd_quadratic(x: Tensor, decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """As masked attention from a zero state: (L * (C B^T)) x."""
    share = x.shape[2] // b.shape[2]
    scores = torch.einsum("BTGN,BSGN->BGTS", c, b).repeat_interleave(share, 1)
    return torch.einsum("BHTS,BSHP->BTHP", decay_matrix(decay.transpose(1, 2)) * scores, x)


def ssd_chunked(x: Tensor, decay: Tensor, b: Tensor, c: Tensor, h: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """Matrix products inside chunks, the recurrence between them. Float32 at least in the decays.

    Letters of the products: M chunks of Q tokens (S when it is the one looked at), G groups of R heads.
    """
    length, groups = x.shape[1], b.shape[2]
    wide = torch.promote_types(h.dtype, torch.float32)
    # Padding to whole chunks with zero inputs and no decay changes neither outputs nor the state.
    x, decay, b, c = (_in_chunks(t, chunk) for t in (x, decay.to(wide), b, c))
    x, decay = x.unflatten(3, (groups, -1)), decay.unflatten(3, (groups, -1))  # (B, M, Q, G, R, P), (B, M, Q, G, R)
    within = decay_matrix(decay.permute(0, 1, 3, 4, 2)).to(x.dtype)  # (B, M, G, R, Q, S)
    from_start = decay.cumsum(2).exp()  # (B, M, Q, G, R)
    scores = torch.einsum("BMQGN,BMSGN->BMGQS", c, b)
    inside = torch.einsum("BMGRQS,BMSGRP->BMQGRP", scores[:, :, :, None] * within, x)
    # From each token to the end of its chunk, the sum of what follows. As a difference of running sums it would lose
    # all after a strong forget: of 1e6 in float32 nothing below 0.06 is left.
    following = F.pad(decay[:, :, 1:], (0, 0, 0, 0, 0, 1))
    to_end = following.flip(2).cumsum(2).flip(2).exp().to(x.dtype)  # (B, M, Q, G, R)
    written = torch.einsum("BMQGRP,BMQGN->BMGRPN", x * to_end[..., None], b).flatten(2, 3).to(wide)
    starts, h = [], h.to(wide)
    # Taken apart at once: the gradient of each slice alone would be a whole tensor of zeros.
    for kept, new in zip(from_start[:, :, -1].flatten(2).unbind(1), written.unbind(1), strict=True):
        starts.append(h)
        h = torch.addcmul(new, kept[..., None, None], h)
    before = torch.stack(starts, 1).to(x.dtype).unflatten(2, (groups, -1))  # the state at the start of each chunk
    from_before = torch.einsum("BMQGN,BMGRPN->BMQGRP", c, before) * from_start.to(x.dtype)[..., None]
    return (inside + from_before).flatten(3, 4).flatten(1, 2)[:, :length], h


def decay_matrix(decay: Tensor) -> Tensor:
    """L_ij = exp(sum_(j < k <= i) decay_k) for j <= i, else 0; (..., T) to (..., T, T).

    Of one running sum in the number type of the decays, differences would lose small decays after large ones. It is
    taken in float64 and split into two numbers of the narrower type, whose differences are near exact; and a decay that
    leaves nothing in any case is bounded, so that the sums stay small.
    """
    matrix: Tensor = _DecayMatrix.apply(decay)  # pyright: ignore[reportAssignmentType]
    return matrix


class _DecayMatrix(torch.autograd.Function):
    """A decay at k acts on every pair j < k <= i: d_decay_k = sum_(i >= k) (rows - columns)_i of d_L L."""

    @staticmethod
    def forward(ctx, decay: Tensor) -> Tensor:
        running = wide(decay.clamp(min=2 * math.log(torch.finfo(decay.dtype).tiny))).cumsum(-1)
        high = running.to(decay.dtype)
        low = (running - high).to(decay.dtype)
        sums = high[..., :, None] - high[..., None, :]
        if decay.dtype != torch.float64:
            sums.add_(low[..., :, None]).sub_(low[..., None, :])
        after = torch.ones(sums.shape[-2:], dtype=torch.bool, device=decay.device).triu(1)
        matrix = sums.masked_fill_(after, float("-inf")).exp_()
        ctx.save_for_backward(matrix)
        return matrix

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:
        (matrix,) = ctx.saved_tensors
        pairs = gradients[0] * matrix
        # A token's own pair feels no decay.
        pairs.diagonal(dim1=-2, dim2=-1).zero_()
        return (pairs.sum(-1) - pairs.sum(-2)).flip(-1).cumsum(-1).flip(-1)


def _in_chunks(t: Tensor, chunk: int) -> Tensor:
    """(B, T, ...) to (B, M, chunk, ...), with zeros after the end."""
    missing = -t.shape[1] % chunk
    if missing:
        t = torch.cat([t, t.new_zeros(t.shape[0], missing, *t.shape[2:])], 1)
    return t.unflatten(1, (-1, chunk))
