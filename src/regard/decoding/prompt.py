"""Prompts as a batch: rows padded on the right, each one checked before the model sees it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from regard.core.model import TokenModel
from regard.decoding.ending import window_of
from regard.errors import UsageError


def checked_prompts(
    model: TokenModel, prompts: Sequence[Int[Tensor, "_"]], *, fit: bool, window: int | None = None
) -> list[list[int]]:
    """The prompts' tokens, checked one by one. fit: whether each must fit in the model's window, or in `window`."""
    rows = [prompt.tolist() for prompt in prompts]
    for number, tokens in enumerate(rows):
        check_prompt(model, tokens, f"prompt {number}", window_of(model, window) if fit else math.inf)
    return rows


def check_prompt(model: TokenModel, tokens: Sequence[int], where: str, window: float) -> None:
    """Refuse an empty prompt, an unknown token and a prompt beyond the window."""
    if len(tokens) == 0:
        raise UsageError(f"{where} is empty: begin it with the start symbol")
    check_tokens(model, tokens, where)
    if len(tokens) > window:
        raise UsageError(
            f"{where} has {len(tokens)} tokens, more than the window of {window:g}: shorten it, or let it slide"
        )


def check_tokens(model: TokenModel, tokens: Sequence[int], where: str) -> None:
    """Refuse a token outside of the model's vocabulary, which would be another row of memory or a crash."""
    for token in (min(tokens, default=0), max(tokens, default=0)):
        if not 0 <= token < model.vocab_size:
            raise UsageError(
                f"{where} has token {token}, but the model knows 0 to {model.vocab_size - 1}: use the model's tokenizer"
            )


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B"] | None]:
    """Rows padded on the right, and their lengths, or None when all are equal."""
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    tokens = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True).to(device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return tokens, None if len({len(row) for row in rows}) == 1 else lengths
