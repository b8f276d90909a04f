"""torch's fused recurrences in the number type that was asked for.

Under autocast torch runs cuDNN's recurrences in float16 whatever the type of autocast is. Gradients of a mean over many
tokens are smaller than float16 can tell from nothing, and bfloat16 is asked for because it needs no loss scaling: so
there the weights are cast here.

A hidden-to-hidden matrix of the caller's may stand in for the cell's own, as weight drop wants it: parameters stay as
they are, and the fused loop reads the other one.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

HIDDEN = "weight_hh_l0"


def run_cell(cell: nn.RNNBase, x: Tensor | PackedSequence, before: Any = None, hidden: Tensor | None = None) -> Any:
    """`cell(x, before)`, under autocast to bfloat16 on a GPU in bfloat16. hidden: W_hh in the place of its own."""
    device = (x if isinstance(x, Tensor) else x.data).device.type
    autocast = device == "cuda" and torch.is_autocast_enabled(device)
    if not autocast or torch.get_autocast_dtype(device) != torch.bfloat16:
        return (cell if hidden is None else typed(cell, None, hidden))(x, before)
    with torch.autocast(device, enabled=False):
        return typed(cell, torch.bfloat16, hidden)(x.to(torch.bfloat16), _typed_as(before, torch.bfloat16))


def typed(cell: nn.RNNBase, dtype: torch.dtype | None, hidden: Tensor | None = None) -> nn.RNNBase:
    """A cell that reads the weights of `cell` in another number type, in one piece of memory, as cuDNN likes them.

    dtype   None for their own.
    hidden  W_hh in the place of its own.
    """
    own: list[Tensor] = list(cell._flat_weights)  # pyright: ignore
    if hidden is not None:
        own[cell._flat_weights_names.index(HIDDEN)] = hidden  # pyright: ignore
    flat = torch.cat([weight.reshape(-1) for weight in own]).to(dtype or own[0].dtype)
    parts = flat.split([weight.numel() for weight in own])
    other: Any = copy.copy(cell)
    other._flat_weights = [part.view_as(weight) for part, weight in zip(parts, own, strict=True)]
    return other


def _typed_as(before: Any, dtype: torch.dtype) -> Any:
    if before is None:
        return None
    return tuple(part.to(dtype) for part in before) if isinstance(before, tuple) else before.to(dtype)
