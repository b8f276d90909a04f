"""View: a model of any shape as the laws see it, which know tokens, a state and logits.

tokens alone      the model itself
encoder-decoder   the model with its source given, and with padding in that source
labels, tags      the model with what it has no use for, a state, passed by
numbers           the same, over a past and a future that the first token stands for
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.data_spec import EXAMPLE
from regard.core.inputs import PastKnown
from regard.core.model import logits_of
from regard.core.state import Position, State, advance, zero_position
from regard.laws import chance

VOCABULARY = 11
PADDING = VOCABULARY - 1  # a token that no text has
CLASSES = 3
PAST = 168  # steps of a series that are read
BLANK = 32
LETTER = 98  # what a word with its spelling writes for the byte of an a
SPELT, KNOWN_FORM = 16, 13  # bytes of a word that are read, and the number of the first form that is known
READ = 4  # different tokens of a source, which the smallest vocabulary has


def view(module: nn.Module) -> nn.Module:
    """What the laws call."""
    whole: Any = module
    reads = getattr(module, "reads", "tokens")
    if hasattr(module, "given") and hasattr(module, "encode"):
        source, lengths = sources(reads, 1)
        return whole.given(_typed_as(module, source), lengths)
    if reads == "numbers":
        return Foreseeing(module)
    return module if getattr(module, "has_state", True) else Stateless(module, reads)


def sources(reads: str, batch: int) -> tuple[Tensor, Tensor | None]:
    """Something to read, always the same, and how much of each is real; None where all of it is."""
    if reads == "pictures":
        assert EXAMPLE.picture is not None
        return chance.even(batch, *EXAMPLE.picture, seed=17), None
    lengths = torch.tensor([4, 1, 5, 2])[torch.arange(batch) % 4]
    return chance.whole(READ, batch, 5, seed=17), lengths


def elsewhere(module: nn.Module) -> nn.Module:
    """What the laws call of an encoder-decoder, with another source."""
    whole: Any = module
    given, lengths = sources(whole.model.reads, 4)
    given = _typed_as(module, given)
    return whole.model.given(given[2:3], None if lengths is None else lengths[2:3])


def _typed_as(module: nn.Module, source: Tensor) -> Tensor:
    """Pictures in the number type of the model's weights, where it has some."""
    first = next(module.parameters(), None)
    return source if first is None or not source.is_floating_point() else source.to(first.dtype)


class Stateless(nn.Module):
    """A model of whole texts; its state only counts. One answer for a text is a sequence of one."""

    def __init__(self, model: nn.Module, reads: str) -> None:
        super().__init__()
        self.model = model
        self.head = nn.Identity()
        self.reads = reads

    @property
    def causal(self) -> bool:
        return self._whole.causal

    @property
    def has_state(self) -> bool:
        return self._whole.has_state

    @property
    def chunk_sizes(self) -> tuple[int, ...]:
        whole = self._whole
        return whole.encoder.stack.chunk_sizes if hasattr(whole, "encoder") else whole.chunk_sizes

    def init_state(self, batch_size: int) -> State:
        return Position(zero_position(batch_size))

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        found = logits_of(self.model, self._as_read(tokens), context=context)
        logits = found if found.dim() == 3 else found[:, None]
        if state is None:
            return logits, None
        return logits, Position(advance(state.position, tokens.shape[1], context.lengths))

    def vectors(self, tokens: Tensor, context: Context = EMPTY) -> Tensor:
        """What the model's head makes answers of."""
        return self.model(self._as_read(tokens), None, context)[0]

    def _as_read(self, tokens: Tensor) -> Tensor:
        return {"words": _words, "text": _characters, "letters": _letters}.get(self.reads, lambda same: same)(tokens)

    @property
    def _whole(self) -> Any:
        return self.model


class Foreseeing(nn.Module):
    """A forecaster; a row's first token stands for a past and what is known ahead, its quantiles are one answer."""

    causal = has_state = False
    chunk_sizes = ()

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.head = nn.Identity()

    def init_state(self, batch_size: int) -> State:
        return Position(zero_position(batch_size))

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        dtype = next(itertools.chain(self.model.parameters(), self.model.buffers())).dtype
        pasts = chance.normal(VOCABULARY, PAST, EXAMPLE.n_channels, seed=17)
        known = chance.normal(VOCABULARY, EXAMPLE.horizon, EXAMPLE.n_known, seed=18)
        past, ahead = pasts[tokens[:, 0]].to(dtype), known[tokens[:, 0]].to(dtype)
        answers = logits_of(self.model, PastKnown(past, ahead)).flatten(1)[:, None]
        if state is None:
            return answers, None
        return answers, Position(advance(state.position, tokens.shape[1], context.lengths))


def _words(tokens: Tensor) -> Tensor:
    """Tokens with a spelling and forms of their own, (B, T, 1 + L + 2): the shortest has one letter and one form."""
    number, place = torch.arange(VOCABULARY)[:, None], torch.arange(SPELT)
    spelt = torch.where(place <= number, LETTER + number, 0)
    forms = torch.cat([KNOWN_FORM + number, number // 2], -1)
    return torch.cat([tokens[..., None], spelt[tokens], forms[tokens]], -1)


def _characters(tokens: Tensor) -> Tensor:
    """Tokens as the characters of a text: letters, and a blank now and then."""
    return torch.where(tokens % 4 == 3, BLANK, LETTER - 1 + tokens)


def _letters(tokens: Tensor) -> Tensor:
    """Tokens as words of one letter, (B, T, 1)."""
    return (LETTER - 1 + tokens)[..., None]
