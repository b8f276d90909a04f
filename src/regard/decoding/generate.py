"""Generation: a batch of prompts continued token by token, the same for every model.

The prompts go through the model in one call; after that each token costs one step (`Mixer.step`) of a state of fixed
size. A row draws from a random stream of its own, so that what it becomes depends on the seed and its number and never
on the rows beside it. Rows that have ended leave the batch.

A model with learned positions has a last one. When a row has filled the window, it either ends (finish "context") or
slides: its state is rebuilt from the last half of the window, and `Generation.slides` counts how often. Sliding is
the default, because a text should be as long as was asked for; tokens drawn after it were given that half only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.logits import eval_mode, model_device, next_logits
from regard.decoding.logits_processing import Sampling, draw, raw_log_probs, warped_log_probs
from regard.decoding.prompt import checked_prompts, padded
from regard.decoding.stop import StopFilter, Streamer
from regard.errors import NumericError, UsageError

Finish = Literal["eos", "stop", "length", "context"]
DEFAULT = Sampling()
# Steps for which a state is given room at once; a longer text gets as much room again as it has used. Not all at once:
# off the CPU every step looks at the whole room.
STEPS_RESERVED = 256


@dataclass(frozen=True)
class Limits:
    """When a text ends.

    max_tokens  tokens drawn at most.
    eos_id      the token that ends a text; None when there is none.
    stop        strings that end it; they need a streamer.
    slide       whether to go on with half the context when the window is full, or to end.
    window      tokens of context, where the model itself has no last position or a later one; None for no other limit.
    """

    max_tokens: int
    eos_id: int | None = None
    stop: tuple[str, ...] = ()
    slide: bool = True
    window: int | None = None

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, found {self.max_tokens}")


@dataclass(frozen=True)
class Piece:
    """One token of one row as it comes.

    text      what may be shown now: never half a character, never part of a stop string. "" without a streamer.
    log_prob  under the raw distribution.
    finish    why the row ends with this token, or None.
    """

    row: int
    token: int
    log_prob: float
    text: str
    finish: Finish | None


@dataclass(frozen=True)
class Generation:
    """A finished row.

    tokens     all that were drawn, an ending token or those that spell a stop string among them.
    log_probs  of each token under the raw distribution.
    finish     "eos", "stop" (a stop string), "length" (max_tokens) or "context" (the model's window is full).
    text       what was shown: neither the stop string nor the ending token is part of it. "" without a streamer.
    slides     how often the context was cut to half a window.
    """

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    finish: Finish
    text: str
    slides: int


def generate(
    model: TokenModel,
    prompts: Sequence[Int[Tensor, "_"]],
    *,
    limits: Limits,
    settings: Sampling = DEFAULT,
    streamer: Callable[[], Streamer] | None = None,
    seed: int = 0,
    first: int | Sequence[int] = 0,
) -> list[Generation]:
    """Each prompt continued until it ends. Prompt i draws from the random stream (seed, first + i), or first[i]."""
    rows = _rows(model, prompts, limits, streamer, (seed, first))
    for _ in _run(model, rows, limits, settings):
        pass
    return [row.generation() for row in rows]


def stream(
    model: TokenModel,
    prompts: Sequence[Int[Tensor, "_"]],
    *,
    limits: Limits,
    settings: Sampling = DEFAULT,
    streamer: Callable[[], Streamer] | None = None,
    seed: int = 0,
    first: int = 0,
) -> Iterator[Piece]:
    """The pieces of `generate` as they come. The model is in evaluation mode until the last one or `close()`."""
    return _run(model, _rows(model, prompts, limits, streamer, (seed, first)), limits, settings)


@dataclass
class _Row:
    """A prompt and what has been drawn after it. `context` counts the tokens that the row's state has seen."""

    number: int
    tokens: list[int]
    n_prompt: int
    chance: np.random.Generator
    streamer: Streamer | None
    filter: StopFilter
    context: int = 0
    slides: int = 0
    finish: Finish | None = None
    log_probs: list[float] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def push(self, token: int, log_prob: float, limits: Limits, window: float) -> Piece:
        """Take one drawn token, and end the row when it is time."""
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        text = ""
        if token == limits.eos_id:
            self.finish = "eos"
        elif self.streamer is not None:
            text = self.filter.push(self.streamer.push(token))
        if self.finish is None and len(self.log_probs) == limits.max_tokens:
            self.finish = "length"
        elif self.finish is None and self.context >= window and not limits.slide:
            self.finish = "context"
        if self.finish is not None and self.streamer is not None:
            text += self.filter.push(self.streamer.finish())
            text += self.filter.finish()
        if self.filter.stopped:
            self.finish = "stop"
        self.shown.append(text)
        return Piece(self.number, token, log_prob, text, self.finish)

    def generation(self) -> Generation:
        assert self.finish is not None
        drawn = tuple(self.tokens[self.n_prompt :])
        return Generation(drawn, tuple(self.log_probs), self.finish, "".join(self.shown), self.slides)


@dataclass
class _Cohort:
    """Rows that step together: their common state, with the slots used and reserved in it, and their next logits."""

    rows: list[_Row]
    state: State
    logits: Float[Tensor, "B V"]
    used: int
    reserved: int


def _rows(
    model: TokenModel,
    prompts: Sequence[Tensor],
    limits: Limits,
    streamer: Callable[[], Streamer] | None,
    origin: tuple[int, int | Sequence[int]],
) -> list[_Row]:
    if limits.stop and streamer is None:
        raise UsageError("stop strings need a streamer, which turns tokens into text")
    seed, first = origin
    numbers = range(first, first + len(prompts)) if isinstance(first, int) else first
    rows = []
    for i, tokens in enumerate(checked_prompts(model, prompts, fit=not limits.slide)):
        chance = np.random.Generator(np.random.PCG64([seed, numbers[i]]))
        text = streamer() if streamer is not None else None
        rows.append(_Row(i, tokens, len(tokens), chance, text, StopFilter(limits.stop)))
    return rows


def _run(model: TokenModel, rows: list[_Row], limits: Limits, settings: Sampling) -> Iterator[Piece]:
    """Steps of all rows until each has ended."""
    window = min(float(limit) for limit in (model.max_length, limits.window, math.inf) if limit is not None)
    with eval_mode(model):
        cohorts = [_prefill(model, rows, window)] if rows else []
        while cohorts:
            for cohort in cohorts:
                tokens, log_probs = _choose(cohort, settings)
                for row, token, log_prob in zip(cohort.rows, tokens, log_probs, strict=True):
                    yield row.push(token, log_prob, limits, window)
            cohorts = [after for cohort in cohorts for after in _advance(model, cohort, limits, window)]


def _prefill(model: TokenModel, rows: list[_Row], window: float) -> _Cohort:
    """A state for these rows from their tokens, or from the last half window of tokens that exceed the window."""
    contexts = []
    for row in rows:
        if len(row.tokens) > window:
            row.slides += 1
            contexts.append(row.tokens[-max(1, int(window) // 2) :])
        else:
            contexts.append(row.tokens)
        row.context = len(contexts[-1])
    tokens, lengths = padded(contexts, model_device(model))
    logits, state = next_logits(model, tokens, model.init_state(len(rows)), lengths)
    return _Cohort(rows, state, logits, tokens.shape[1], tokens.shape[1])


def _advance(model: TokenModel, cohort: _Cohort, limits: Limits, window: float) -> Iterator[_Cohort]:
    """Feed the drawn tokens to the rows that go on; rows whose window is full start again as a cohort of their own."""
    going = [i for i, row in enumerate(cohort.rows) if row.finish is None and row.context < window]
    full = [row for row in cohort.rows if row.finish is None and row.context >= window]
    if going:
        device = cohort.logits.device
        rows, state, reserved = [cohort.rows[i] for i in going], cohort.state, cohort.reserved
        if len(going) < len(cohort.rows):
            state = state.select(torch.tensor(going, device=device))
        if cohort.used == reserved:
            steps = max(min(limits.max_tokens - len(row.log_probs), window - row.context) for row in rows)
            reserved += int(min(steps, max(STEPS_RESERVED, reserved)))
            state = state.reserve(reserved)
        tokens = torch.tensor([[row.tokens[-1]] for row in rows], device=device)
        for row in rows:
            row.context += 1
        logits, state = next_logits(model, tokens, state)
        yield _Cohort(rows, state, logits, cohort.used + 1, reserved)
    if full:
        yield _prefill(model, full, window)


def _choose(cohort: _Cohort, settings: Sampling) -> tuple[list[int], list[float]]:
    """The next token of each row and its raw log-probability."""
    raw = raw_log_probs(cohort.logits)
    if raw.isnan().any():
        row = cohort.rows[int(raw.isnan().any(-1).nonzero()[0])]
        raise NumericError(f"the model's logits for token {len(row.log_probs)} of prompt {row.number} are not numbers")
    if settings.greedy:
        tokens = cohort.logits.argmax(-1)
    else:
        uniform = torch.tensor([row.chance.random() for row in cohort.rows], dtype=torch.float64)
        tokens = draw(warped_log_probs(cohort.logits, settings), uniform)
    return tokens.tolist(), raw.gather(-1, tokens[:, None])[:, 0].tolist()
