"""Cross-entropy of a linear head without ever holding all logits.

    loss = sum_n [ log sum_v exp(l_nv) - l_n,target(n) ],   l = h W^T + b

With 33,000 words the logits of a batch outweigh everything else in memory and their element-wise passes outweigh the
products in time. Here a few rows at a time go through product, softmax and both gradient products while they are in the
cache; what is kept for the backward pass is the gradients themselves, not the logits.

With label smoothing epsilon, shared by all V classes, the loss is larger by a sum that needs no logits at all:

    epsilon sum_n [ l_n,target(n) - mean_v l_nv ],  the difference being  h_n . (W_target - mean W) + b_target - mean b
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# Logits held at a time. Fewer would add to the weight's gradient more often, which costs a pass over it each time;
# a GPU has no cache to stay in and wants few large products.
LOGITS_AT_A_TIME = {"cpu": 12_000_000, "cuda": 100_000_000}
# Below this many logits the plain form is as fast and simpler.
WORTH_CHUNKING = 2_000_000


def linear_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The summed loss of hidden (N, D) against targets (N,), a scalar in float32 at least."""
    hidden, targets = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)
    if torch.is_autocast_enabled(hidden.device.type):
        dtype = torch.get_autocast_dtype(hidden.device.type)
        hidden, weight = hidden.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    if hidden.shape[0] * weight.shape[0] <= WORTH_CHUNKING:
        return linear_cross_entropy_readable(hidden, weight, bias, targets, ignore_index, label_smoothing)
    loss: Tensor = _LinearCrossEntropy.apply(hidden, weight, bias, targets, ignore_index)  # pyright: ignore
    if label_smoothing == 0:
        return loss
    return loss + label_smoothing * _above_mean(hidden, weight, bias, targets, ignore_index)


def linear_cross_entropy_readable(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The same with all logits at once."""
    logits = F.linear(hidden, weight, bias)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits, targets, reduction="sum", ignore_index=ignore_index, label_smoothing=label_smoothing)


def _above_mean(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int) -> Tensor:
    """sum_n [ l_n,target(n) - mean_v l_nv ] over the targets that count."""
    wide = torch.promote_types(hidden.dtype, torch.float32)
    counted = targets != ignore_index
    targets = targets[counted]
    rows = F.embedding(targets, weight).to(wide) - weight.mean(0, dtype=wide)
    total = (hidden[counted].to(wide) * rows).sum()
    return total if bias is None else total + (bias.to(wide)[targets] - bias.mean(dtype=wide)).sum()


class _LinearCrossEntropy(torch.autograd.Function):
    """Loss and gradients chunk by chunk, all in the forward pass."""

    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int) -> Tensor:
        wide = torch.promote_types(hidden.dtype, torch.float32)
        needs_hidden, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        # Rows that do not count cost nothing.
        rows = (targets != ignore_index).nonzero()[:, 0]
        loss = torch.zeros((), dtype=wide, device=hidden.device)
        d_hidden = torch.zeros_like(hidden) if needs_hidden else None
        d_weight = torch.zeros(weight.shape, dtype=wide, device=weight.device) if needs_weight else None
        d_bias = torch.zeros(bias.shape, dtype=wide, device=bias.device) if bias is not None and needs_bias else None
        at_a_time = LOGITS_AT_A_TIME.get(hidden.device.type, LOGITS_AT_A_TIME["cuda"])
        n_chunks = max(1, -(-len(rows) * len(weight) // at_a_time))
        pieces = rows.tensor_split(n_chunks)
        buffer = torch.empty(len(pieces[0]), len(weight), dtype=hidden.dtype, device=hidden.device)
        for piece in pieces:
            h, target = hidden[piece], targets[piece, None]
            logits = _product(h, weight, bias, buffer[: len(piece)])
            piece_loss, d_logits = _loss_and_gradient(logits, target, wide)
            loss += piece_loss
            if d_bias is not None:
                d_bias += d_logits.sum(0)
            if d_hidden is not None:
                d_hidden[piece] = d_logits @ weight
            if d_weight is not None:
                _add_product(d_weight, d_logits, h)
        ctx.save_for_backward(d_hidden, d_weight, d_bias)
        ctx.dtypes = hidden.dtype, weight.dtype, None if bias is None else bias.dtype
        return loss

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradients[0]
        scaled = [
            None if gradient is None else (gradient * scale).to(dtype)
            for gradient, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        ]
        return (*scaled, None, None)


def _product(h: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    """h W^T + b into memory that is used again for every chunk: fresh pages cost more than the product's last third."""
    if bias is None:
        return torch.mm(h, weight.T, out=out)
    return torch.addmm(bias, h, weight.T, out=out)


def _loss_and_gradient(logits: Tensor, target: Tensor, wide: torch.dtype) -> tuple[Tensor, Tensor]:
    """The summed loss and softmax - one-hot, the latter in place of the logits.

    log sum exp(l) = max l - log(max p): the largest probability never underflows, the target's may.
    """
    aim, highest = logits.gather(1, target).to(wide), logits.amax(-1, keepdim=True).to(wide)
    in_place = logits.dtype == wide
    p = torch.softmax(logits, -1, out=logits) if in_place else torch.softmax(logits, -1, dtype=wide)
    loss = (highest - p.amax(-1, keepdim=True).log() - aim).sum()
    p.scatter_add_(1, target, torch.full_like(target, -1, dtype=wide))
    return loss, p.to(logits.dtype)


def _add_product(total: Tensor, d_logits: Tensor, h: Tensor) -> None:
    """total += d_logits^T h, in the number type of the total."""
    if total.dtype == d_logits.dtype:
        total.addmm_(d_logits.T, h)
    else:
        total += d_logits.T @ h
