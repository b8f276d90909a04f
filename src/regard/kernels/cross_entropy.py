"""Cross-entropy of a linear head without ever holding all logits.

    loss = sum_n [ log sum_v exp(l_nv) - l_n,target(n) ],   l = h W^T + b

With 33,000 words the logits of a batch outweigh everything else in memory and their element-wise passes outweigh the
products in time. Here a few rows at a time go through product, softmax and both gradient products while they are in the
cache; what is kept for the backward pass is the gradients themselves, not the logits.

With label smoothing epsilon, shared by all V classes, the loss is larger by a sum that needs no logits at all:

    epsilon sum_n [ l_n,target(n) - mean_v l_nv ],  the difference being  h_n . (W_target - mean W) + b_target - mean b
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels.choice import has_triton
from regard.kernels.compiled_call import followed_gradients
from regard.kernels.operators import if_built
from regard.kernels.product import fit, linear, multiply, takes

# Logits held at a time. Fewer would add to the weight's gradient more often, which costs a pass over it each time;
# a GPU has no cache to stay in and wants few large products: with 400 million the gradient of a head of 50,000 words is
# added to eight times for 65,536 tokens, and the buffer takes 0.8 GB in bfloat16.
LOGITS_AT_A_TIME = {"cpu": 12_000_000, "cuda": 400_000_000}
# Below this many logits the plain form is as fast and simpler.
WORTH_CHUNKING = 2_000_000
# Rows of the logits begin at multiples of so many on a GPU: its matrix units take no others at full speed.
ALIGNMENT = 64


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
    # To a compiler it is one operation, whose inside it does not look at; elsewhere the first call of such an operation
    # would load the compiler, which takes seconds.
    chunked = _as_operation if torch.compiler.is_compiling() else _chunked
    loss = chunked(hidden, weight, bias, targets, ignore_index)
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
    logits = linear(hidden, weight, bias)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits, targets, reduction="sum", ignore_index=ignore_index, label_smoothing=label_smoothing)


def _above_mean(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int) -> Tensor:
    """sum_n [ l_n,target(n) - mean_v l_nv ] over the targets that count."""
    wide = torch.promote_types(hidden.dtype, torch.float32)
    counted = targets != ignore_index
    targets = targets.where(counted, 0)
    rows = F.embedding(targets, weight).to(wide) - weight.mean(0, dtype=wide)
    above = (hidden.to(wide) * rows).sum(-1)
    if bias is not None:
        above = above + bias.to(wide)[targets] - bias.mean(dtype=wide)
    return above.where(counted, 0).sum()


def _chunked(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int) -> Tensor:
    if not torch.is_grad_enabled():
        return loss_and_gradients(hidden, weight, bias, targets, ignore_index, (False, False, False))[0]
    return _LinearCrossEntropy.apply(hidden, weight, bias, targets, ignore_index)  # pyright: ignore


class _LinearCrossEntropy(torch.autograd.Function):
    """Loss and gradients chunk by chunk, all in the forward pass.

    The inputs are kept for whoever follows the gradients, which the readable form then makes with all logits.
    """

    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int) -> Tensor:
        loss, *gradients = loss_and_gradients(hidden, weight, bias, targets, ignore_index, ctx.needs_input_grad[:3])
        ctx.save_for_backward(*gradients, hidden, weight, bias, targets)
        ctx.dtypes = hidden.dtype, weight.dtype, None if bias is None else bias.dtype
        ctx.ignore_index = ignore_index
        return loss

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *kept, hidden, weight, bias, targets = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (*_followed(hidden, weight, bias, targets, ctx.ignore_index, gradients), None, None)
        scale = gradients[0]
        scaled = [
            None if gradient is None else (gradient * scale).to(dtype)
            for gradient, dtype in zip(kept, ctx.dtypes, strict=True)
        ]
        return (*scaled, None, None)


def _followed(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int, uppers: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    """Gradients of hidden, weight and bias that know how they came from the inputs."""

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return linear_cross_entropy_readable(hidden, weight, bias, targets, ignore_index)

    if bias is None:
        return (*followed_gradients(loss, (hidden, weight), uppers), None)
    return followed_gradients(loss, (hidden, weight, bias), uppers)


@torch.library.custom_op("regard::linear_cross_entropy", mutates_args=())
def _operation(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int, needs: list[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same as an operation of torch's. A gradient that is not asked for is empty."""
    loss, *gradients = loss_and_gradients(hidden, weight, bias, targets, ignore_index, needs)
    h, w, b = (hidden.new_empty(0) if gradient is None else gradient for gradient in gradients)
    return loss, h, w, b


@_operation.register_fake
def _shapes(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, _targets: Tensor, _ignore_index: int, needs: list[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    wide = torch.promote_types(hidden.dtype, torch.float32)
    return (
        hidden.new_empty((), dtype=wide),
        torch.empty_like(hidden) if needs[0] else hidden.new_empty(0),
        weight.new_empty(weight.shape, dtype=wide) if needs[1] else hidden.new_empty(0),
        bias.new_empty(bias.shape, dtype=wide) if bias is not None and needs[2] else hidden.new_empty(0),
    )


def _keep(ctx, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    hidden, weight, bias, _, _, needs = inputs
    ctx.save_for_backward(*output[1:])
    ctx.needs = needs
    ctx.dtypes = hidden.dtype, weight.dtype, hidden.dtype if bias is None else bias.dtype


def _scaled(ctx, scale: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    made = zip(ctx.saved_tensors, ctx.dtypes, ctx.needs, strict=True)
    scaled = [(gradient * scale).to(dtype) if needed else None for gradient, dtype, needed in made]
    return (*scaled, None, None, None)


_operation.register_autograd(_scaled, setup_context=_keep)


def _as_operation(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int) -> Tensor:
    graded = torch.is_grad_enabled()
    needs = [graded and part is not None and part.requires_grad for part in (hidden, weight, bias)]
    return _operation(hidden, weight, bias, targets, ignore_index, needs)[0]


def loss_and_gradients(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int, needs: Sequence[bool]
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """The summed loss and what is asked for of its gradients: of hidden in its own type, of weight and bias wide."""
    wide = torch.promote_types(hidden.dtype, torch.float32)
    on_gpu = _as_on_gpu(hidden.device)
    # Rows that do not count cost nothing; on a GPU to know which they are would be to wait for it.
    rows = None if on_gpu else (targets != ignore_index).nonzero()[:, 0]
    n_rows = len(targets) if rows is None else len(rows)
    n_classes = len(weight)
    padded = -(-n_classes // ALIGNMENT) * ALIGNMENT if on_gpu else n_classes
    if padded != n_classes:
        weight = F.pad(weight, (0, 0, 0, padded - n_classes))
        bias = None if bias is None else F.pad(bias, (0, padded - n_classes))
    loss = torch.zeros((), dtype=wide, device=hidden.device)
    d_hidden = torch.zeros_like(hidden) if needs[0] else None
    d_weight = torch.zeros(weight.shape, dtype=wide, device=weight.device) if needs[1] else None
    d_bias = torch.zeros(bias.shape, dtype=wide, device=bias.device) if bias is not None and needs[2] else None
    at_a_time = LOGITS_AT_A_TIME.get(hidden.device.type, LOGITS_AT_A_TIME["cuda"])
    at_once = -(-n_rows // max(1, -(-n_rows * padded // at_a_time)))
    buffer = torch.empty(at_once, padded, dtype=hidden.dtype, device=hidden.device)
    for start in range(0, n_rows, max(1, at_once)):
        piece: slice | Tensor = slice(start, min(start + at_once, n_rows))
        size = piece.stop - piece.start
        piece = piece if rows is None else rows[piece]
        h, target = hidden[piece], targets[piece]
        logits = _product(h, weight, bias, buffer[:size])
        d_logits = _gradient_in_place(logits, target, n_classes, ignore_index, loss, all_count=rows is not None)
        if d_bias is not None:
            d_bias += d_logits.sum(0, dtype=wide)
        if d_hidden is not None and rows is None:
            torch.mm(d_logits, weight, out=d_hidden[piece])
        elif d_hidden is not None:
            d_hidden[piece] = linear(d_logits, weight.T, None)
        if d_weight is not None:
            _add_product(d_weight, d_logits, h)
    return loss, d_hidden, _cut(d_weight, n_classes), _cut(d_bias, n_classes)


def _as_on_gpu(device: torch.device) -> bool:
    """Triton's interpreter stands for one."""
    return device.type == "cuda" or has_triton(device)


def _cut(gradient: Tensor | None, n_classes: int) -> Tensor | None:
    """Without the rows that were put there to fill up; a copy only where there are any, as an operation may not return
    a part of something larger."""
    return gradient if gradient is None or len(gradient) == n_classes else gradient[:n_classes].clone()


def _product(h: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    """h W^T + b into memory that is used again for every chunk: fresh pages cost more than the product's last third."""
    if takes(h, weight, bias) and fit(h, weight.shape, bias):
        return multiply(out, h, weight.T, bias)
    if bias is None:
        return torch.mm(h, weight.T, out=out)
    return torch.addmm(bias, h, weight.T, out=out)


def _gradient_in_place(
    logits: Tensor, target: Tensor, n_classes: int, ignore_index: int, loss: Tensor, *, all_count: bool
) -> Tensor:
    """softmax - one-hot in place of the logits, zeros in rows that do not count and beyond the last class.

    What the rows lose is added to `loss`. all_count: every row does.
    """
    if loss.dtype == torch.float32 and has_triton(logits.device):
        losses = if_built("the cross-entropy", _by_kernel, logits, target, n_classes, ignore_index)
        if losses is not None:
            loss += losses.sum()
            return logits
    piece_loss, p = _loss_and_gradient(logits[:, :n_classes], target, ignore_index, loss.dtype)
    loss += piece_loss
    if not all_count:
        p.masked_fill_((target == ignore_index)[:, None], 0)
    if p.shape == logits.shape:
        return p.to(logits.dtype)
    logits[:, :n_classes] = p
    logits[:, n_classes:] = 0
    return logits


def _by_kernel(logits: Tensor, target: Tensor, n_classes: int, ignore_index: int) -> Tensor:
    from regard.kernels.cross_entropy_triton import gradient_in_place

    return gradient_in_place(logits, target, n_classes, ignore_index)


def _loss_and_gradient(logits: Tensor, target: Tensor, ignore_index: int, wide: torch.dtype) -> tuple[Tensor, Tensor]:
    """The summed loss and softmax - one-hot of every row, the latter in place of the logits where they are as wide.

    log sum exp(l) = max l - log(max p): the largest probability never underflows, the target's may.
    """
    counted = (target != ignore_index)[:, None]
    target = target[:, None].where(counted, 0)
    aim, highest = logits.gather(1, target).to(wide), logits.amax(-1, keepdim=True).to(wide)
    in_place = logits.dtype == wide and logits.is_contiguous()
    p = torch.softmax(logits, -1, out=logits) if in_place else torch.softmax(logits, -1, dtype=wide)
    loss = (highest - p.amax(-1, keepdim=True).log() - aim).where(counted, 0).sum()
    p.scatter_add_(1, target, torch.full_like(target, -1, dtype=wide))
    return loss, p


def _add_product(total: Tensor, d_logits: Tensor, h: Tensor) -> None:
    """total += d_logits^T h, in the number type of the total."""
    if takes(total, d_logits, h):
        multiply(total, d_logits.T, h, adds=True)
    elif total.dtype == d_logits.dtype:
        total.addmm_(d_logits.T, h)
    elif total.device.type == "cuda" and total.dtype == torch.float32:
        total += torch.mm(d_logits.T, h, out_dtype=torch.float32)  # pyright: ignore[reportCallIssue]
    else:
        total += d_logits.T @ h
