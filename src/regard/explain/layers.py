"""Layers: the vectors of a text before the first layer of a model, after each of them, and as they leave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.stack import Stack
from regard.core.tap import plain, record, resting

BEFORE, AFTER = "before", "output"


@torch.no_grad()
def vectors_by_layer(model: nn.Module, call: Callable[[], Any]) -> dict[str, Tensor]:
    """Vectors (B, T, D) by the name of the layer that they come from, first to last, while `call` runs the model.

    model  what has an embedding, a stack and a norm: a language model or an encoder.
    """
    whole: Any = plain(model)
    first = next((name for name, part in whole.named_modules() if isinstance(part, Stack)), None)
    pattern = "" if first is None else f"{first}.streams.*"
    with resting(whole), _heard(whole.embedding) as before, _heard(whole.norm) as after, record(whole, pattern) as seen:
        call()
    layers = {f"layer {number}": entries[-1] for number, entries in enumerate(seen.values(), start=1)}
    return {BEFORE: before[-1], **layers, AFTER: after[-1]}


@contextmanager
def _heard(module: nn.Module) -> Iterator[list[Tensor]]:
    """What comes out of a module, call by call."""
    found: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: object, value: Tensor) -> None:
        found.append(value.detach())

    handle = module.register_forward_hook(keep)
    try:
        yield found
    finally:
        handle.remove()
