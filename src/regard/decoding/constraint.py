"""Texts of a given form: at every place only tokens that can still become a match have any probability.

An automaton over bytes (automaton.py) reads the bytes of every token of the vocabulary, all of them side by side, from
the state that the text has come to; the tokens after which it is not dead are allowed. That is found once for a state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.decoding.automaton import DEAD, Automaton, Check, automaton, nothing
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.data.tokenizer import Tokenizer

PROBES = 4  # tokens by which it is told whether two tokens before another make a difference to its bytes
KEPT, MASKS = 16, 256  # patterns, and masks of each
PAD = 256


class TokenBytes:
    """The bytes that every token adds, by what stands before it. A special token adds none and is never allowed."""

    def __init__(self, tokenizer: Tokenizer, end_id: int) -> None:
        self.tokenizer, self.end_id = tokenizer, end_id
        self.size = tokenizer.vocab_size
        self.plain = [token for token in range(self.size) if not tokenizer.is_special(token)]
        self.tables: dict[tuple[bytes, ...], tuple[np.ndarray, np.ndarray]] = {}

    def before(self, previous: int | None) -> tuple[bytes, ...]:
        """What tells apart the tokens after which others add other bytes."""
        return tuple(self.tokenizer.piece(token, previous) for token in self.plain[:PROBES])

    def table(self, previous: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Columns of bytes (L, V), PAD after the last, and which tokens add any."""
        key = self.before(previous)
        if key not in self.tables:
            pieces = [b""] * self.size
            for token in self.plain:
                pieces[token] = self.tokenizer.piece(token, previous)
            longest = max(map(len, pieces), default=0)
            columns = np.full((max(longest, 1), self.size), PAD, np.int16)
            for token, piece in enumerate(pieces):
                columns[: len(piece), token] = list(piece)
            self.tables[key] = columns, columns[0] != PAD
        return self.tables[key]


class Form:
    """A pattern in the tokens of a vocabulary."""

    def __init__(self, automaton: Automaton, tokens: TokenBytes) -> None:
        self.automaton, self.tokens = automaton, tokens
        own = np.arange(len(automaton.table), dtype=automaton.table.dtype)  # where PAD leads: nowhere else
        self.table = np.concatenate([automaton.table, own[:, None]], 1)
        self.masks: OrderedDict[tuple[int, tuple[bytes, ...]], Tensor] = OrderedDict()

    def rule(self, previous: int | None) -> FormRule:
        """The rule of one text whose prompt ends with the token `previous`; refused where no token begins a match."""
        rule = FormRule(self, previous)
        start, end = rule.allowed(), self.tokens.end_id
        if not self.automaton.accepts[rule.state] and bool(start[end]):
            raise UsageError("no token of the vocabulary begins a text that matches the pattern")
        return rule

    def allowed(self, state: int, previous: int | None) -> Tensor:
        """Boolean (V,): tokens that may come next. Where there is none, the text can but end."""
        key = state, self.tokens.before(previous)
        if key not in self.masks:
            columns, some = self.tokens.table(previous)
            states = np.full(self.tokens.size, state, np.int32)
            for column in columns:
                states = self.table[states, column]
            found = some & (states != DEAD)
            found[self.tokens.end_id] = self.automaton.accepts[state] or not found.any()
            self.masks[key] = torch.from_numpy(found)
            while len(self.masks) > MASKS:
                self.masks.popitem(last=False)
        return self.masks[key]


class FormRule:
    """Of one text: where it has come to is found from the tokens that it has drawn since the last time.

    stuck  whether it ended, though it is no match, because no token of the vocabulary could go on.
    """

    def __init__(self, form: Form, previous: int | None) -> None:
        self.form, self.previous = form, previous
        self.state, self.read, self.stuck = form.automaton.start, 0, False
        # Where words bring a space along, the first one's is not the text's own: it is left out if no other can begin.
        self.spaced = previous is not None and not self._begins(previous) and self._begins(None)

    def __call__(self, logits: Tensor, drawn: Sequence[int]) -> Tensor:
        for token in drawn[self.read :]:
            self._take(token)
        self.read, allowed = len(drawn), self.allowed()
        self.stuck = bool(allowed[self.form.tokens.end_id]) and not self.form.automaton.accepts[self.state]
        allowed = torch.nn.functional.pad(allowed, (0, logits.shape[0] - allowed.shape[0]))
        return logits.masked_fill(~allowed.to(logits.device), float("-inf"))

    def allowed(self) -> Tensor:
        """Tokens that may come next, (V,)."""
        return self.form.allowed(self.state, None if self.spaced else self.previous)

    def _begins(self, previous: int | None) -> bool:
        allowed = self.form.allowed(self.state, previous).clone()
        allowed[self.form.tokens.end_id] = False
        return bool(allowed.any())

    def _take(self, token: int) -> None:
        tokens = self.form.tokens
        if not tokens.tokenizer.is_special(token):
            piece = tokens.tokenizer.piece(token, None if self.spaced else self.previous)
            self.state = self.form.automaton.after(self.state, piece)
            self.previous, self.spaced = token, False


class Forms:
    """Patterns that were asked for lately, by a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, end_id: int) -> None:
        self.tokens = TokenBytes(tokenizer, end_id)
        self.kept: OrderedDict[str, Form] = OrderedDict()
        self.lock = Lock()

    def form(self, pattern: str, check: Check = nothing) -> Form:
        """check: called again and again while an automaton is made; it may raise to break that off."""
        with self.lock:
            found = self.kept.get(pattern)
        if found is None:
            found = Form(automaton(pattern, check), self.tokens)
        with self.lock:
            self.kept[pattern] = found
            self.kept.move_to_end(pattern)
            while len(self.kept) > KEPT:
                self.kept.popitem(last=False)
        return found
