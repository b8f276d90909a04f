"""Masks filled in: the most certain one first, then the others in the light of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.core.context import Context
from regard.core.device import device_of
from regard.data.mask import Masking
from regard.data.ragged import Ragged
from regard.data.tokenizer import Tokenizer
from regard.errors import InputError

if TYPE_CHECKING:
    from torch import nn

MASK = "[MASK]"
TOP = 5


@dataclass(frozen=True, eq=False)
class Passage:
    """A row of held-out text: its ids with their frame, and its number, which says what is hidden in it."""

    ids: np.ndarray
    number: int
    tokenizer: Tokenizer

    @cached_property
    def text(self) -> str:
        return self.tokenizer.decode(self.ids)


@dataclass(frozen=True, eq=False)
class Gapped:
    """A text with masks in it: ids with their frame, and the pieces of text around the masks."""

    ids: np.ndarray
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Fill:
    """What was put in the place of a mask, and the likeliest tokens there with their chances, best first."""

    place: int
    token: int
    top: tuple[tuple[int, float], ...]


def gapped(text: str, masking: Masking, number: int = 0) -> Gapped:
    """A text that a person typed, the one of this number; without a mask it is refused."""
    pieces = text.split(MASK)
    if len(pieces) == 1:
        raise InputError(number, f"has no {MASK}: write it where a token is to be filled in")
    tokenizer = masking.tokenizer
    if tokenizer.brings_space:
        pieces = [piece.removesuffix(" ") for piece in pieces[:-1]] + pieces[-1:]
    ids = [np.array([tokenizer.start_id])]
    for piece in pieces:
        ids += [tokenizer.encode(piece), np.array([masking.mask_id])]
    ids[-1] = np.array([tokenizer.eos_id])
    return Gapped(np.concatenate(ids), tuple(pieces))


def hidden(passage: Passage, masking: Masking, seed: int) -> Gapped:
    """A held-out row with a mask at every chosen place, and the text around them."""
    tokenizer, ids = masking.tokenizer, passage.ids
    _, targets = masking.hide(ids[None], np.array([len(ids)]), np.array([passage.number]), seed)
    gaps = targets[0] >= 0
    pieces, text, previous = [], b"", None
    for token, is_gap in zip(ids[1:-1].tolist(), gaps[1:-1].tolist(), strict=True):
        piece = tokenizer.piece(token, previous) if not tokenizer.is_special(token) else b"\n"
        if is_gap:
            # The space that a whole word gets before it belongs to the text around.
            spelled = tokenizer.token_text(token).encode()
            pieces.append(text + (piece[: -len(spelled)] if piece.endswith(spelled) else b""))
            text = b""
        else:
            text += piece
        previous = None if tokenizer.is_special(token) else token
    around = tuple(part.decode("utf-8", "replace") for part in (*pieces, text))
    return Gapped(np.where(gaps, masking.mask_id, ids), around)


@torch.no_grad()
def fill(model: nn.Module, masking: Masking, rows: Ragged, chosen: np.ndarray) -> list[list[Fill]]:
    """Every mask in the rows `chosen` filled in, in the order of the places. A row takes a pass for each mask."""
    whole: Any = model
    device = device_of(model)
    tokens, lengths = rows.padded(chosen, masking.tokenizer.eos_id)
    tokens, lengths = tokens.to(device), lengths.to(device)
    found: list[list[Fill]] = [[] for _ in chosen]
    while (left := (tokens == masking.mask_id)).any():
        vectors = whole.encode(tokens, Context(lengths=lengths))[left]
        chances = _chances(whole.head(vectors), masking)
        sure, best = chances.max(-1)
        at = left.nonzero()
        for row in at[:, 0].unique().tolist():
            here = (at[:, 0] == row).nonzero()[:, 0]
            one = int(here[sure[here].argmax()])
            place = int(at[one, 1])
            tokens[row, place] = best[one]
            found[row].append(Fill(place, int(best[one]), _top(chances[one])))
    return [sorted(fills, key=lambda one: one.place) for fills in found]


def joined(pieces: Sequence[str], words: Sequence[str]) -> str:
    """Pieces of text with a word between each two."""
    return "".join(part for pair in zip(pieces, [*words, ""], strict=True) for part in pair)


def details_of(tokenizer: Tokenizer, top: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """The likeliest token at a mask, and those after it, by name and chance."""
    named = [{"token": tokenizer.token_text(token), "probability": chance} for token, chance in top]
    return {**named[0], "top": named}


def _chances(logits: Tensor, masking: Masking) -> Tensor:
    """Over the tokens of text: neither the mask nor `<eos>` is one."""
    logits = logits.float()
    logits[:, [masking.tokenizer.eos_id, masking.mask_id]] = float("-inf")
    return logits.softmax(-1)


def _top(chances: Tensor) -> tuple[tuple[int, float], ...]:
    values, tokens = chances.topk(min(TOP, len(chances) - 2))
    return tuple(zip(tokens.tolist(), values.tolist(), strict=True))
