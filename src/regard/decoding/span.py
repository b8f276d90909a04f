"""Reading given text: log p of every token of an array of ids, each counted once, in bounded memory.

A span says which tokens are read in one go and from which one on they count. Tokens before that are context only. A
text, a document, a window of a long text and a stretch of a stream are all spans, so that scoring and evaluation of
every family of models is this one reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.core.model import TokenModel
from regard.decoding.logits import eval_mode, model_device, read

# Positions in one call. Attention from a carried state makes a mask of positions x tokens seen.
POSITIONS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Span:
    """ids[begin .. end - 1] are read, ids[begin + 1 .. end] predicted, those from `counted` on counted.

    Indices are inclusive. `begin` may be -1: the start symbol, which stands before the array.
    """

    begin: int
    counted: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Reading:
    """Counted tokens, in no order: where they stand in the array, log p, and whether they were the most probable."""

    index: np.ndarray
    log_prob: np.ndarray
    best: np.ndarray


def whole(begin: int, end: int) -> list[Span]:
    """One span: everything after `begin` counts."""
    return [Span(begin, begin + 1, end)]


def windows(begin: int, end: int, length: int, stride: int | None = None) -> list[Span]:
    """Spans of at most `length` tokens, each `stride` (half of `length`) further, which count what is new in them.

    So a counted token has at least length - stride tokens before it, except near the beginning.
    """
    stride = max(1, length // 2) if stride is None else stride
    spans = [Span(begin, begin + 1, min(begin + length, end))]
    while spans[-1].end < end:
        last = spans[-1]
        stop = min(last.end + stride, end)
        spans.append(Span(stop - length, last.end + 1, stop))
    return spans


def read_spans(
    model: TokenModel,
    ids: np.ndarray,
    spans: Sequence[Span],
    *,
    start_id: int,
    batch_size: int = 16,
    at_once: int = 0,
    best: bool = True,
) -> Iterator[Reading]:
    """Every counted token of the spans, `batch_size` spans at a time and a chunk of positions after the other.

    at_once  of short spans more are read together, up to so many tokens.
    best     whether it is asked which tokens were the most probable ones.
    """
    ordered = sorted(spans, key=lambda span: -span.length)
    first = 0
    with eval_mode(model):
        while first < len(ordered):
            size = max(batch_size, at_once // max(1, min(ordered[first].length, POSITIONS_AT_ONCE)))
            yield from _read_together(model, ids, ordered[first : first + size], start_id, best)
            first += size


def _read_together(
    model: TokenModel, ids: np.ndarray, spans: list[Span], start_id: int, best: bool
) -> Iterator[Reading]:
    """Spans from the longest to the shortest, side by side, with the state carried from chunk to chunk."""
    device = model_device(model)
    state = model.init_state(len(spans))
    for offset in range(0, spans[0].length, POSITIONS_AT_ONCE):
        live = [span for span in spans if span.length > offset]
        if len(live) < len(spans):
            state = state.select(torch.arange(len(live), device=device))
            spans = live
        lengths = np.array([min(span.length - offset, POSITIONS_AT_ONCE) for span in spans])
        steps = np.arange(lengths[0])
        inputs = np.array([span.begin + offset for span in spans])[:, None] + steps  # (B, T)
        ends = np.array([span.end for span in spans])[:, None]
        tokens, targets = (_take(ids, np.minimum(index, ends), start_id, device) for index in (inputs, inputs + 1))
        # A row ends in its last chunk and is dropped after it, so that nothing ever reads what its padding does.
        log_probs, first, state = read(model, tokens, targets, state, best=best)
        counted = (steps < lengths[:, None]) & (inputs + 1 >= np.array([span.counted for span in spans])[:, None])
        yield Reading(inputs[counted] + 1, log_probs.cpu().double().numpy()[counted], first.cpu().numpy()[counted])


def _take(ids: np.ndarray, index: np.ndarray, start_id: int, device: torch.device) -> Tensor:
    """ids[index] as a tensor, the start symbol where the index is -1."""
    values = np.where(index < 0, start_id, ids[np.maximum(index, 0)]).astype(np.int64)
    return torch.from_numpy(values).to(device)
