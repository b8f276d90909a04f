"""Floors: the least that a model's work asks of any machine, counted from the model.

    seconds >= max(operations / operations a second, bytes / bytes a second)          (Williams et al. 2009)

Glossary
P    numbers in the matrices of products: of linear maps, recurrent cells and the head, also where it is a table's
S_t  numbers of the state after t tokens, that of the source among them: what the next token looks at

tokens read               operations  2 P + 2 S_t for each
a step of training        operations  thrice that, forwards and twice backwards: 6 P + 6 S_t
                          bytes       P read forwards and backwards; of every parameter a gradient written, read for its
                                      norm, and by AdamW weight, gradient and two moments read, three of them written
one token of every row    bytes       P once for all rows, S_t for each row

In a Transformer S_t is the keys and values of t tokens, so that 2 S_t is what scores and weighted values cost.
Norms, activations, softmax, drawing and what goes from one layer to the next are not counted, nor is padding: the work
cannot be done in less, and what lies in a cache can seem to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.state import State
from regard.mixers.attention import SelfAttention
from regard.models.encoder_decoder import EncoderDecoder

FORWARD, TRAINED = 2, 6  # operations for each number that is met, and those with its gradients
MATRICES_READ, PARAMETER_MOVES = 2, 9  # in a step of training


@dataclass(frozen=True)
class Cost:
    """Of some work."""

    operations: float
    bytes: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.operations + other.operations, self.bytes + other.bytes)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.operations * times, self.bytes * times)


def matrices(model: nn.Module) -> dict[str, Tensor]:
    """The matrices of products by name, each once however many parts share it."""
    found: dict[int, tuple[str, Tensor]] = {}
    for name, part in model.named_modules():
        if isinstance(part, (nn.Linear, nn.RNNBase)):
            for own, weight in part.named_parameters(recurse=False):
                if weight.dim() == 2:
                    found.setdefault(id(weight), (f"{name}.{own}", weight))
    return dict(found.values())


@dataclass(frozen=True)
class TextCounts:
    """What is counted of a language model: numbers in the matrices of its layers and head, in its state before any
    token, and in what each token adds to that; bytes of a number, and of one in a matrix where those are
    narrower."""

    layers: int
    head: int
    start: int
    growth: int
    itemsize: int
    narrow: int | None = None

    @classmethod
    def of(cls, model: nn.Module) -> TextCounts:
        head, layers = _parted(matrices(model), ("head.",))
        start, growth = _state_counts(model)
        return cls(layers, head, start, growth, _itemsize(model))

    @property
    def weight(self) -> int:
        return self.itemsize if self.narrow is None else self.narrow

    def state(self, seen: int) -> int:
        return self.start + self.growth * seen

    def states(self, first: int, last: int) -> int:
        """The sum of the states after `first` to `last` tokens."""
        return sum(self.state(seen) for seen in range(first, last + 1))

    def step(self, rows: int, seen: int) -> Cost:
        """One more token of each row through the layers, after `seen` of them."""
        operations = FORWARD * rows * (self.layers + self.state(seen + 1))
        return Cost(operations, self.weight * self.layers + self.itemsize * rows * self.state(seen))

    def answer(self, rows: int) -> Cost:
        """The head's logits for one token of each row."""
        return Cost(FORWARD * rows * self.head, self.weight * self.head)


def training_cost(model: nn.Module, rows: int, length: int) -> Cost:
    """A training step of a language model."""
    counts = TextCounts.of(model)
    met = (counts.layers + counts.head) * length + counts.states(1, length)
    return Cost(TRAINED * rows * met, _moved(model))


def generation_cost(model: nn.Module, rows: int, prompt: int, count: int, weight: int | None = None) -> Cost:
    """`count` tokens after a prompt that is read at once; the last of them is not read any more.

    weight  bytes of a number in a matrix, where it is narrower than in the model.
    """
    counts = replace(TextCounts.of(model), narrow=weight)
    read = FORWARD * rows * (counts.layers * prompt + counts.states(1, prompt))
    begun = Cost(read, counts.weight * counts.layers)
    steps = (counts.step(rows, seen) for seen in range(prompt, prompt + count - 1))
    return sum(steps, begun) + counts.answer(rows) * count


def token_cost(model: nn.Module, rows: int, seen: int) -> Cost:
    """One token of each row through the layers, without the head."""
    return TextCounts.of(model).step(rows, seen)


@dataclass(frozen=True)
class PairCounts:
    """What is counted of an encoder and a decoder.

    source  numbers in the matrices that read the source, token by token: the encoder's, and those that make keys and
            values of its memory.
    once    in those that read one vector of the whole source.
    text    what the decoder has for its own tokens; in its start is no source.
    self_looks, memory  numbers of each token of the source that every other one of the source looks at, and every
                        token of the text.
    """

    source: int
    once: int
    text: TextCounts
    self_looks: int
    memory: int

    @classmethod
    def of(cls, model: EncoderDecoder) -> PairCounts:
        # The parts say in their names what they read: memory_to_keys, vector_to_state, input_to_hidden.
        source, rest = _split(matrices(model), ("encoder.", ".memory_to_"))
        once, rest = _split(rest, (".vector_to_",))
        head, layers = _parted(rest, ("decoder.head.",))
        one, two = (_numbers(model.start(_zeros(model, length))) for length in (1, 2))
        _, growth = _state_counts(model.given(_zeros(model, 1)))
        text = TextCounts(layers, head, 2 * one - two, growth, _itemsize(model))
        attention = [part.config for part in model.encoder.modules() if isinstance(part, SelfAttention)]
        looks = sum(2 * config.groups * config.width for config in attention)  # keys and values
        return cls(_total(source), _total(once), text, looks, two - one)

    def read(self, sources: Sequence[int]) -> Cost:
        """Sources of these lengths read, and all made ready that is made once."""
        met = sum(self.source * length + self.self_looks * length**2 + self.once for length in sources)
        return Cost(FORWARD * met, self.text.itemsize * (self.source + self.once))

    def step(self, sources: Sequence[int], width: int, seen: int) -> Cost:
        """One more token of `width` rows for each source, without the head. Rows of one source share its memory."""
        memory = self.memory * sum(sources)
        own = self.text.step(width * len(sources), seen)
        return own + Cost(FORWARD * width * memory, self.text.itemsize * memory)


def pair_training_cost(model: EncoderDecoder, sources: Sequence[int], targets: Sequence[int]) -> Cost:
    """A training step on pairs of these lengths."""
    counts = PairCounts.of(model)
    text = counts.text
    met = (text.layers + text.head) * sum(targets) + sum(text.states(1, length) for length in targets)
    met += counts.memory * sum(s * t for s, t in zip(sources, targets, strict=True))
    thrice = TRAINED // FORWARD
    return Cost(TRAINED * met + thrice * counts.read(sources).operations, _moved(model))


def beam_cost(model: EncoderDecoder, sources: Sequence[int], width: int, count: int) -> Cost:
    """A beam search of `count` steps; in the first of them the rows of a source are still one."""
    counts = PairCounts.of(model)
    cost = counts.read(sources)
    for seen in range(count):
        rows = width if seen else 1
        cost += counts.step(sources, rows, seen) + counts.text.answer(rows * len(sources))
    return cost


def source_steps_cost(model: EncoderDecoder, sources: Sequence[int], width: int, count: int) -> Cost:
    """The first token of `width` rows for each source `count` times, the source met before, without the head."""
    return PairCounts.of(model).step(sources, width, 0) * count


def _moved(model: nn.Module) -> int:
    """Bytes of a training step."""
    every = sum(parameter.numel() for parameter in model.parameters())
    return _itemsize(model) * (MATRICES_READ * _total(matrices(model)) + PARAMETER_MOVES * every)


def _split(named: dict[str, Tensor], marks: Iterable[str]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Those whose names have one of the marks in them, and the others."""
    chosen = {name: weight for name, weight in named.items() if any(mark in name for mark in marks)}
    return chosen, {name: weight for name, weight in named.items() if name not in chosen}


def _parted(named: dict[str, Tensor], marks: Iterable[str]) -> tuple[int, int]:
    chosen, others = _split(named, marks)
    return _total(chosen), _total(others)


def _total(named: dict[str, Tensor]) -> int:
    return sum(weight.numel() for weight in named.values())


@torch.no_grad()
def _state_counts(model: Any) -> tuple[int, int]:
    """Numbers of the state before any token, and those that a token adds."""
    state = model.init_state(1)
    start = _numbers(state)
    _, after = model(_zeros(model, 1), state)
    return start, _numbers(after) - start


def _numbers(state: State) -> int:
    return sum(tensor.numel() for tensor in state.tensors() if tensor.is_floating_point())


def _zeros(model: Any, length: int) -> Tensor:
    return torch.zeros(1, length, dtype=torch.long, device=next(model.parameters()).device)


def _itemsize(model: nn.Module) -> int:
    return next(model.parameters()).element_size()
