"""Generation: a batch of prompts continued token by token, the same for every model; a client of the engine.

The prompts are read side by side; after that each token costs one step (`Mixer.step`) of a state of fixed size. A row
draws from a random stream of its own, so that what it becomes depends on the seed and its number and never on the rows
beside it. Rows that have ended leave the batch. A row that has filled the model's window ends or slides (engine.py);
`Generation.slides` counts how often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

import torch
from jaxtyping import Int
from torch import Tensor

from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.draft import Drafter, speculate
from regard.decoding.ending import Limits
from regard.decoding.engine import DEFAULT, Engine
from regard.decoding.logits import eval_mode
from regard.decoding.logits_processing import Sampling
from regard.decoding.prompt import checked_prompts
from regard.decoding.row import Row
from regard.decoding.stop import StopFilter, Streamer
from regard.decoding.streamed_text import Generation, Piece, StreamedText
from regard.errors import UsageError
from regard.kernels.packed import packed_weights

# Tokens for which capturing a step pays, and for which copies of matrices do.
REPAYS, PACKING_REPAYS = 32, 16


def generate(
    model: TokenModel,
    prompts: Sequence[Int[Tensor, "_"]],
    *,
    limits: Limits,
    settings: Sampling = DEFAULT,
    streamer: Callable[[], Streamer] | None = None,
    seed: int = 0,
    first: int | Sequence[int] = 0,
    slots: int | None = None,
    draft: Drafter | None = None,
) -> list[Generation]:
    """Each prompt continued until it ends. Prompt i draws from the random stream (seed, first + i), or first[i].

    slots  prompts that are continued side by side at most; None for all, as rows with sources of their own need it.
    draft  what proposes tokens; then prompts are continued one by one.
    """
    texts = _texts(model, prompts, limits, streamer)
    for _ in _run(model, texts, limits, settings, (seed, first), slots, draft):
        pass
    return [text.generation() for text in texts]


def stream(
    model: TokenModel,
    prompts: Sequence[Int[Tensor, "_"]],
    *,
    limits: Limits,
    settings: Sampling = DEFAULT,
    streamer: Callable[[], Streamer] | None = None,
    seed: int = 0,
    first: int = 0,
    draft: Drafter | None = None,
) -> Iterator[Piece]:
    """The pieces of `generate` as they come. The model is in evaluation mode until the last one or `close()`."""
    return _run(model, _texts(model, prompts, limits, streamer), limits, settings, (seed, first), None, draft)


def _texts(
    model: TokenModel, prompts: Sequence[Tensor], limits: Limits, streamer: Callable[[], Streamer] | None
) -> list[StreamedText]:
    if limits.stop and streamer is None:
        raise UsageError("stop strings need a streamer, which turns tokens into text")
    rows = checked_prompts(model, prompts, fit=not limits.slide, window=limits.window)
    return [
        StreamedText(i, tokens, streamer() if streamer is not None else None, StopFilter(limits.stop))
        for i, tokens in enumerate(rows)
    ]


def _run(
    model: TokenModel,
    texts: list[StreamedText],
    limits: Limits,
    settings: Sampling,
    origin: tuple[int, int | Sequence[int]],
    slots: int | None,
    draft: Drafter | None,
) -> Iterator[Piece]:
    """Steps of all texts until each has ended."""
    if not texts:
        return
    seed, first = origin
    numbers = range(first, first + len(texts)) if isinstance(first, int) else first
    if draft is not None:
        origins = [(seed, number) for number in numbers]
        yield from _run_drafted(model, texts, limits, settings, origins, draft)
        return
    width = min(slots or len(texts), len(texts))
    pays = {"graphs": limits.max_tokens >= REPAYS, "packs": limits.max_tokens >= PACKING_REPAYS}
    with Engine(model, width, together=width, compact=True, **pays) as engine:
        start = _start(model, len(texts)) if width == len(texts) else None
        for text, number in zip(texts, numbers, strict=True):
            begins = None if start is None else (start, text.number)
            engine.submit(text.prompt, limits, settings, seed=seed, row=number, start=begins)
        while engine.busy:
            for drawn in engine.step():
                text = texts[drawn.request]
                if text.finish is not None:
                    continue  # drawn before the host saw that a stop string was complete
                yield text.push(drawn)
                if text.finish == "stop":
                    engine.cancel(drawn.request)


@torch.no_grad()
def _start(model: TokenModel, n_rows: int) -> State:
    """What all rows begin with: they may have sources of their own, and then row i begins otherwise than row j."""
    return model.init_state(n_rows)


def _run_drafted(
    model: TokenModel,
    texts: list[StreamedText],
    limits: Limits,
    settings: Sampling,
    origins: list[tuple[int, int]],
    draft: Drafter,
) -> Iterator[Piece]:
    """The same, one text after the other, with tokens proposed."""
    packs = packed_weights(model, draft.tokens + 1) if limits.max_tokens >= PACKING_REPAYS else nullcontext()
    with eval_mode(model), draft.resting(), packs:
        start = _start(model, len(texts))
        for text, origin in zip(texts, origins, strict=True):
            begins = (start, text.number)
            row = Row.checked(model, text.number, text.prompt, limits, settings, origin, begins)
            for drawn in speculate(model, row, draft):
                yield text.push(drawn)
                if text.finish is not None:
                    break
