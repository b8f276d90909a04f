"""Reading: one input as a run's model meets it, with names for every position, ready to be run and listened to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.trace import Trace, trace
from regard.errors import UsageError
from regard.explain.word import Groups, groups

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
    quantiles  its answers are quantiles of a number.
    counts     the model counts, and has neither vectors nor gradients.
    shows      what the parts of the model have to show; see `regard.explain.site.shown_by`.
    """

    tokens: bool = False
    next: bool = False
    mask: bool = False
    classes: bool = False
    whole: bool = False
    source: bool = False
    quantiles: bool = False
    counts: bool = False
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

    def with_input(self, number: int, value: Tensor, labels: tuple[str, ...] | None = None) -> Reading:
        """The same with another input on one side: tokens changed, dropped or in another order."""
        inputs = (*self.inputs[:number], value, *self.inputs[number + 1 :])
        side = self.sides[number] if labels is None else Side(self.sides[number].name, labels)
        sides = (*self.sides[:number], side, *self.sides[number + 1 :])
        return replace(self, inputs=inputs, sides=sides)
