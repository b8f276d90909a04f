"""A request as the host knows it: its tokens, how they are drawn and how far it is; and the random numbers ahead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.device import widest
from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.ending import Finish, Limits
from regard.decoding.logits_processing import Sampling
from regard.decoding.philox import as_int64, uniforms
from regard.decoding.prompt import check_prompt
from regard.decoding.row_rules import NO_RULES, Likeliest, RowRules

# Random numbers of a row that are made at one time: making one takes as many operations as making all of them.
CHANCES = 128


class Drawn(NamedTuple):
    """One token of one request.

    log_prob   under the raw distribution; NaN where the model's logits were none, and then `finish` is "numeric".
    finish     why the request ends with this token, or None.
    slides     how often its context has been cut to half a window so far.
    likeliest  tokens of this place and their raw log-probabilities, as many as were asked for.
    """

    request: int
    token: int
    log_prob: float
    finish: Finish | Literal["numeric"] | None
    slides: int
    likeliest: Likeliest = ()


@dataclass(eq=False)
class Row:
    """A request and what has been drawn for it.

    window   tokens of context that its state may hold.
    origin   seed and number of its random stream.
    start    a state and the row of it that this request begins with; None for the model's own beginning.
    context  tokens that its state has seen.
    rules    on its logits, and what is told of its places beside their tokens.
    """

    request: int
    tokens: list[int]
    limits: Limits
    window: float
    settings: Sampling
    origin: tuple[int, int]
    start: tuple[State, int] | None = None
    drawn: int = 0
    context: int = 0
    slides: int = 0
    finish: Finish | Literal["numeric", "cancelled"] | None = None
    rules: RowRules = NO_RULES
    likeliest: Likeliest = ()

    @classmethod
    def checked(
        cls,
        model: TokenModel,
        request: int,
        prompt: Sequence[int],
        limits: Limits,
        settings: Sampling,
        origin: tuple[int, int],
        start: tuple[State, int] | None = None,
    ) -> Row:
        """A request as it is made; a prompt that the model cannot read, or that must not slide and does not fit, is
        refused.
        """
        window = limits.window_of(model)
        check_prompt(model, prompt, "a prompt", math.inf if limits.slide else window)
        return cls(request, list(prompt), limits, window, settings, origin, start)

    @property
    def written(self) -> list[int]:
        """What was drawn so far."""
        return self.tokens[len(self.tokens) - self.drawn :]

    @property
    def left(self) -> int:
        """Tokens that may yet be drawn."""
        return self.limits.max_tokens - self.drawn

    @property
    def full(self) -> bool:
        """Whether its state has no room for one more token."""
        return self.context >= self.window

    def to_read(self) -> list[int]:
        """The tokens of its state: all of them, or the last half window of those that exceed the window."""
        if len(self.tokens) <= self.window:
            return self.tokens
        return self.tokens[-max(1, int(self.window) // 2) :]

    def begin(self) -> list[int]:
        """The same, when they are about to be read: where some are left out, the window slides."""
        self.slides += len(self.tokens) > self.window
        return self.to_read()

    def push(self, token: int, log_prob: float) -> Drawn:
        """Take one drawn token, and end when it is time."""
        self.tokens.append(token)
        self.drawn += 1
        finish = None
        if log_prob != log_prob:
            finish = "numeric"
        elif token == self.limits.eos_id:
            finish = "eos"
        elif self.left == 0:
            finish = "length"
        elif self.full and not self.limits.slide:
            finish = "context"
        self.finish = finish
        return Drawn(self.request, token, log_prob, finish, self.slides, self.likeliest)


class Chance:
    """The next random numbers of rows, on their device.

    table (B, N), the column (B,) of it that each row has come to, and how many are left for each, known to the host.
    """

    def __init__(self, table: Float[Tensor, "B N"], left: list[int]) -> None:
        self.table, self.left = table, left
        self.column = torch.zeros(len(left), dtype=torch.long, device=table.device)

    @classmethod
    def of(cls, rows: Sequence[Row | None], device: torch.device) -> Chance:
        """Of rows as they stand: draw number `drawn` of a row comes first. None is a row that nobody uses."""
        origins = [(0, 0, 0) if row is None else (*map(as_int64, row.origin), row.drawn) for row in rows]
        seed, number, drawn = torch.tensor(origins, dtype=torch.long).view(-1, 3, 1).unbind(1)
        counter = drawn + torch.arange(CHANCES)
        table = uniforms(seed.expand_as(counter), number.expand_as(counter), counter)
        return cls(table.to(device, widest(device)), [CHANCES] * len(rows))

    @classmethod
    def spent(cls, n_rows: int, device: torch.device) -> Chance:
        """Of rows that have no number left: whoever draws for them makes new ones."""
        table = torch.zeros(n_rows, CHANCES, dtype=widest(device), device=device)
        return cls(table, [0] * n_rows)

    def take(self, count: int) -> Self:
        """Note that every row will have so many of its numbers."""
        self.left = [left - count for left in self.left]
        return self

    def next(self) -> Float[Tensor, "B"]:
        """A number for each row."""
        found = self.table.gather(1, self.column[:, None])[:, 0]
        self.column.add_(1)
        return found

    def insert(self, rows: Sequence[int], other: Chance) -> None:
        """Take the rows of another in place."""
        index: Int[Tensor, "n"] = torch.tensor(rows, device=self.table.device)
        self.table.index_copy_(0, index, other.table)
        self.column.index_copy_(0, index, other.column)
        for row, left in zip(rows, other.left, strict=True):
            self.left[row] = left

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows alone."""
        index = torch.tensor(rows, dtype=torch.long, device=self.table.device)
        self.table, self.column = self.table[index], self.column[index]
        self.left = [self.left[row] for row in rows]
