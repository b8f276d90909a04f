"""Reading: one input as a run's model meets it, with names for every position, ready to be run and listened to.

Texts within the positions of a model: a longer one is refused, or cut where that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.context import Context
from regard.core.device import device_of
from regard.core.inputs import SourceTokens
from regard.core.model import logits_of
from regard.core.tap import Trace, resting, trace
from regard.data.ragged import Ragged, in_batches
from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.word import split
from regard.errors import DataError, InputError, UsageError
from regard.tasks.word import Groups, groups, word_numbers, word_texts

START, END = "<s>", "</s>"


@dataclass(frozen=True)
class Side:
    """A sequence of positions.

    name    text, source, target, picture, past or horizon.
    labels  what stands at each position.
    words   the number of the word that each belongs to, None for none; empty where positions are no text.
    texts   of the words, by their numbers; empty where each is one position.
    """

    name: str
    labels: tuple[str, ...]
    words: tuple[int | None, ...] = ()
    texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def groups(self) -> Groups:
        """Positions of one word together."""
        words = self.words or tuple(range(len(self.labels)))
        return groups(self.labels, words, self.texts)


@dataclass(frozen=True)
class Capabilities:
    """What can be asked of a run; what its task says, and what its model says of itself.

    tokens     what is read first are tokens, which can be left out, changed and put in another order.
    next       it says which token comes after each position.
    mask       it says which word stands at a mask.
    classes    its answers are classes, of the whole or of each position.
    whole      one answer stands for the whole, and not one for each position.
    source     it reads one side and answers at the positions of another.
    number     its answers are numbers that stand for themselves: one, or a chance for each of several labels.
    quantiles  its answers are quantiles of a number.
    answers    the model answers at all; one that only gives vectors does not.
    fitted     the model was fitted at once, and has neither vectors nor gradients.
    shows      what the parts of the model have to show (see `regard.explain.site.shown_by`), and what the model says
               that it has as a whole, by `shows_whole`.
    """

    tokens: bool = False
    next: bool = False
    mask: bool = False
    classes: bool = False
    whole: bool = False
    source: bool = False
    number: bool = False
    quantiles: bool = False
    answers: bool = True
    fitted: bool = False
    shows: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reading:
    """What a run reads of one input.

    inputs   a tensor for each side, (1, T, ...).
    sides    what the positions of each input are; outputs stand at those of the last one, or for the whole.
    forward  inputs, of any batch size, to outputs (B, T, V), or (B, C) where one answer stands for the whole.
    named    the name of an output: a token, a class, a tag.
    targets  what comes after each position of the last side, where it is known; None at its end.
    given    the input as it was typed.
    about    more that a look may want to know of it.
    owner    the run whose reading it is.
    can      what can be asked of it.
    vectors  inputs to what the head reads, (B, T, D), where the head of the model makes the outputs of it; else None.
    kept     what was seen of the same input before, for whoever looks at it again and again; else None.
    """

    model: nn.Module
    inputs: tuple[Tensor, ...]
    sides: tuple[Side, ...]
    forward: Callable[..., Tensor]
    named: Callable[[int], str]
    targets: tuple[int | None, ...] = ()
    given: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    owner: Any = None
    can: Capabilities = Capabilities()
    vectors: Callable[..., Tensor] | None = None
    kept: dict[str, Any] | None = None

    @property
    def main(self) -> Side:
        """The side whose positions have outputs."""
        return self.sides[-1]

    def side(self, name: str) -> Side:
        for side in self.sides:
            if side.name == name:
                return side
        raise UsageError(f"there is no side {name!r}; there is {' and '.join(side.name for side in self.sides)}")

    def run(self) -> Tensor:
        """The outputs, without gradients."""
        with torch.no_grad():
            return self.forward(*self.inputs)

    def trace(self, pattern: str = "*") -> Trace:
        """What the taps see of it."""
        return trace(self.model, lambda: self.forward(*self.inputs), pattern, self.main.labels)

    def before_head(self) -> Tensor:
        """The vectors that the head reads, where they can be had alone, else the outputs; without gradients."""
        with torch.no_grad(), resting(self.model):
            return (self.vectors or self.forward)(*self.inputs)

    def fast(self) -> Tensor:
        """The same, computed once where something is kept."""
        if self.kept is None:
            return self.before_head()
        if "fast" not in self.kept:
            self.kept["fast"] = self.before_head()
        return self.kept["fast"]

    def glimpse(self, pattern: str) -> Trace:
        """What the taps see of it, without asking the head; the last one stays where something is kept."""
        if self.kept is None or self.kept.get("pattern") != pattern:
            seen = trace(self.model, self.before_head, pattern, self.main.labels, self.fast())
            if self.kept is None:
                return seen
            self.kept.update(pattern=pattern, seen=seen)
        return self.kept["seen"]

    def with_input(self, number: int, value: Tensor, labels: tuple[str, ...] | None = None) -> Reading:
        """The same with another input on one side: tokens changed, dropped or in another order."""
        inputs = (*self.inputs[:number], value, *self.inputs[number + 1 :])
        side = self.sides[number] if labels is None else Side(self.sides[number].name, labels)
        sides = (*self.sides[:number], side, *self.sides[number + 1 :])
        return replace(self, inputs=inputs, sides=sides, kept=None)


def text_side(name: str, tokenizer: Tokenizer, ids: Sequence[int], labels: tuple[str, ...]) -> Side:
    """A side of text."""
    words = word_numbers(tokenizer, ids)
    return Side(name, labels, tuple(words), word_texts(tokenizer, ids, words))


def token_label(tokenizer: Tokenizer, token: int) -> str:
    """A token as people see it; the end of a text is no word."""
    return END if token == tokenizer.eos_id else tokenizer.token_text(token)


def token_names(tokenizer: Tokenizer) -> Callable[[int], str]:
    """The name of each token."""
    return lambda token: token_label(tokenizer, token)


def labels_of(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[str]:
    """A label for each token; a word that has no token of its own as it was typed, with a question mark.

    An end before anything else is the start of a text that stands in a frame.
    """
    labels = [token_label(tokenizer, token) for token in ids]
    if len(ids) > 1 and ids[0] == tokenizer.start_id:
        labels[0] = START
    inner = [place for place, token in enumerate(ids) if token != tokenizer.eos_id]
    typed = split(text) if tokenizer.kind == "words" else []
    if len(typed) == len(inner):
        for place, word in zip(inner, typed, strict=True):
            labels[place] = f"{word}?" if ids[place] == tokenizer.unknown_id else labels[place]
    return labels


def next_tokens(ids: Sequence[int]) -> tuple[int | None, ...]:
    """The token after each, and none after the last."""
    return (*ids[1:], None)


def class_reading(
    model: nn.Module, ids: np.ndarray, side: Side, classes: Sequence[str], given: str, device: torch.device
) -> Reading:
    """A text of which classes are told, for the whole or for each position."""
    tokens = torch.from_numpy(ids)[None].to(device)
    return Reading(model, (tokens,), (side,), lambda x: logits_of(model, x), lambda number: classes[number], (), given)


@torch.no_grad()
def each_answer(model: nn.Module, ids: Ragged, at_once: int, of: Callable[[Tensor], Tensor]) -> Iterator[np.ndarray]:
    """What `of` makes of the vector of each text, in their order. at_once: texts whose answers are in memory."""
    device = device_of(model)
    for first in range(0, len(ids), at_once):
        sizes = ids.sizes[first : first + at_once].tolist()
        found: list[np.ndarray] = [np.empty(0)] * len(sizes)
        for rows in in_batches(sizes):
            tokens, lengths = ids.padded(first + rows, 0)
            vectors, _ = model(tokens.to(device), None, Context(lengths=lengths.to(device)))
            for row, one in zip(rows.tolist(), of(vectors).cpu().numpy(), strict=True):
                found[row] = one
        yield from found


def written_reading(
    model: Any,
    source: Tensor,
    side: Side,
    tokenizer: Tokenizer,
    written: Sequence[int],
    given: str,
    typed: str,
    read: Tokenizer | None = None,
) -> Reading:
    """A source and a text that is written from it, token by token; as it was typed, where it was.

    read  the tokenizer of the source, where that is a text.
    """
    opening = tokenizer.opening
    ids = [*opening, *written]
    before = [tokenizer.token_text(token) for token in opening[1:]]
    labels = (START, *before, *labels_of(tokenizer, written, typed))
    target = text_side("target", tokenizer, ids, labels)
    if model.reads_backward:
        side = replace(side, labels=side.labels[::-1], words=side.words[::-1])
    tokens = torch.tensor([ids], device=source.device)
    targets = (*next_tokens(ids)[:-1], tokenizer.eos_id)

    def forward(source: Tensor, tokens: Tensor) -> Tensor:
        return logits_of(model, SourceTokens(source, tokens))

    decode = {"written": tokenizer.decode} | ({} if read is None else {"read": read.decode})
    return Reading(model, (source, tokens), (side, target), forward, token_names(tokenizer), targets, given, decode)


def cut(texts: Ragged, limit: int | None, truncate: bool, what: str = "text") -> Ragged:
    """Texts to learn from, of at most `limit` tokens."""
    number = _too_long(texts, limit)
    if number is None:
        return texts
    if not truncate:
        raise DataError(
            f"{what} {number + 1} has {texts.sizes[number]} tokens and the model {limit} positions; raise "
            f"model.max_length, or cut with --set data.truncate=true"
        )
    return texts.cut(limit or 0)


def fitted(texts: Ragged, limit: int | None, truncate: bool = False) -> Ragged:
    """Inputs of a person, of at most `limit` tokens; cut where the texts of training were."""
    number = _too_long(texts, limit)
    if number is None:
        return texts
    if not truncate:
        raise InputError(number, f"has {texts.sizes[number]} tokens and the model {limit} positions; shorten it")
    return texts.cut(limit or 0)


def _too_long(texts: Ragged, limit: int | None) -> int | None:
    """The number of the longest text, if it is too long."""
    fits = limit is None or not len(texts) or int(texts.sizes.max()) <= limit
    return None if fits else int(texts.sizes.argmax())
