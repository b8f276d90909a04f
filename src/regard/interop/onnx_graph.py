"""The graphs of a model: what is called with tensors alone and gives tensors alone, as ONNX wants it.

    start     tokens (B,), or source and lengths, to the state before any token
    step      a token in each row and the state to the logits of the next and the state after
    forward   a whole input to the answers, of what reads it at once

A recurrence, a state space and attention have the same two graphs, start and step: only the state differs. A state that
grows is reserved: it has room for `length` tokens. Its tensors have the names of their fields, `state.0.keys`, and what
comes out for the next step is called `next.0.keys`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.context import Context
from regard.core.data_spec import DataSpec
from regard.core.inputs import PastKnown
from regard.core.model import Embeds
from regard.core.state import State
from regard.errors import UsageError
from regard.interop.onnx_scan import filled, scanned
from regard.layers.spelled import KINDS, SPELLING_BYTES, SPELLING_LENGTH
from regard.models.encoder_decoder import SourceModel

ROWS, LENGTH = 3, 5  # of the inputs that a graph is made and tried with
LONGER = 131  # tokens of those that it is tried with besides: above what is done at once anywhere
LONGEST = 1024  # tokens for which a growing state has room where nothing else is said
BATCH, TIME, SOURCE = "batch", "time", "source_time"


@dataclass(frozen=True, eq=False)
class Graph:
    """What becomes one file.

    name     of its file.
    module   what the graph is made of. own: what it has to equal, the model as it is.
    inputs   examples by name. axes: of each input those of any size.
    outputs  their names.
    others   inputs of fewer and of more tokens than the examples, where their number is any.
    """

    name: str
    module: nn.Module
    own: nn.Module
    inputs: dict[str, Tensor]
    axes: dict[str, dict[int, str]]
    outputs: list[str]
    others: tuple[dict[str, Tensor], ...] = ()


@dataclass(frozen=True)
class Graphs:
    """All of a model. room: tokens that a growing state holds, None where it does not grow."""

    graphs: list[Graph]
    room: int | None = None
    named: dict[str, Graph] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "named", {graph.name: graph for graph in self.graphs})


class Start(nn.Module):
    """Of a language model: the state before any token, in as many rows as there are tokens."""

    def __init__(self, model: Any, room: int) -> None:
        super().__init__()
        self.model, self.room = model, room

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        state = self.model.init_state(tokens.shape[0]).reserve(self.room)
        return tuple(tensor.clone() for tensor in state.tensors())


class SourceStart(nn.Module):
    """Of what reads a source: the state that has met it."""

    def __init__(self, model: Any, room: int) -> None:
        super().__init__()
        self.model, self.room = model, room

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, ...]:
        return tuple(tensor.clone() for tensor in self.state(source, lengths).tensors())

    def state(self, source: Tensor, lengths: Tensor | None = None) -> State:
        # Each row has a memory of its own, as long as it is: 0 asks for no more.
        return self.model.start(source, lengths).reserve(self.room, 0)


class Step(nn.Module):
    """One token in each row. state: one of its kind, whose constants hold for all."""

    def __init__(self, model: Any, state: State) -> None:
        super().__init__()
        self.model, self.state = model, state

    def forward(self, tokens: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        # What is reserved is written in place, and a graph's inputs are not.
        before = filled(self.state, [tensor.clone() for tensor in state])
        vectors, after = self.model(tokens[:, None], before)
        return self.model.head(vectors)[:, 0], *after.tensors()


class Forward(nn.Module):
    """A whole text to its answers, or to its vector."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        context = Context(lengths=lengths)
        if isinstance(self.model, Embeds):
            return self.model.embed(tokens, context)
        return self.model.head(self.model(tokens, None, context)[0])


class Forecast(nn.Module):
    """A past and what is known of the times ahead to their quantiles."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, past: Tensor, known: Tensor) -> Tensor:
        return self.model.head(self.model(PastKnown(past, known))[0])


def graphs_of(model: Any, spec: DataSpec, room: int | None = None) -> Graphs:
    """The graphs of a model. room: tokens of a growing state, None for as many as it has positions, or LONGEST."""
    most: int | None = model.max_length
    if room is not None and most is not None and room > most:
        raise UsageError(f"--length {room}: the model has {most} positions")
    room = room or most or LONGEST
    if isinstance(model, SourceModel):
        return _of_source(model, spec, room)
    if model.reads == "numbers":
        past, known = torch.randn(ROWS, spec.history, spec.n_channels), torch.randn(ROWS, spec.horizon, spec.n_known)
        inputs = {"past": past, "known": known}
        axes = {"past": {0: BATCH}, "known": {0: BATCH}}
        return Graphs([Graph("forward", Forecast(scanned(model)), Forecast(model), inputs, axes, ["quantiles"])])
    if model.causal and hasattr(model, "init_state"):
        start = Start(model, room)
        tokens = _tokens(spec.vocab_size, ROWS)
        state = model.init_state(ROWS).reserve(room)
        first = Graph("start", start, start, {"tokens": tokens}, {"tokens": {0: BATCH}}, _named(state, "state"))
        return Graphs([first, _step(model, state, tokens)], room if _grows(model) else None)
    inputs = _texts("tokens", model.reads, spec, _length(model))
    others = _others("tokens", model.reads, spec, _above(model, most))
    axes = {"tokens": {0: BATCH, 1: TIME}, "lengths": {0: BATCH}}
    embeds = isinstance(model, Embeds)
    told = "vector" if embeds else "answers"
    return Graphs([Graph("forward", Forward(scanned(model)), Forward(model), inputs, axes, [told], others)])


def _of_source(model: Any, spec: DataSpec, room: int) -> Graphs:
    if model.reads == "pictures":
        inputs, others = {"source": _read(model.reads, spec, LENGTH)}, ()
        axes: dict[str, dict[int, str]] = {"source": {0: BATCH}}
    else:
        inputs = _texts("source", model.reads, spec, LENGTH)
        others = _others("source", model.reads, spec, _above(model, model.max_source_length))
        axes = {"source": {0: BATCH, 1: SOURCE}, "lengths": {0: BATCH}}
    own = SourceStart(model, room)
    state = own.state(*inputs.values())
    met = SOURCE if model.reads != "pictures" else None
    first = Graph("start", SourceStart(scanned(model), room), own, inputs, axes, _named(state, "state"), others)
    return Graphs([first, _step(model, state, _tokens(spec.vocab_size, ROWS), met)], room if _grows(model) else None)


def _grows(model: Any) -> bool:
    return getattr(model, "stack", model).state_grows


def _step(model: Any, state: State, tokens: Tensor, met: str | None = None) -> Graph:
    """met: the name of the axis of a memory's vectors where their number is any."""
    names = _named(state, "state")
    inputs = {"tokens": tokens} | dict(zip(names, (tensor.clone() for tensor in state.tensors()), strict=True))
    axes: dict[str, dict[int, str]] = {name: {0: BATCH} for name in inputs}
    if met is not None:
        for name in _memories(state, "state"):
            axes[name][1] = met
    step = Step(model, state)
    return Graph("step", step, step, inputs, axes, ["logits", *_named(state, "next")])


def _named(state: State, prefix: str) -> list[str]:
    return [name for name, _ in _fields(state, prefix)]


def _memories(state: State, prefix: str) -> list[str]:
    """Names of tensors that have a row for each vector of a memory: whoever holds `lengths` of it."""
    return [
        f"{name}.{one}"
        for name, part in _parts(state, prefix)
        if {"keys", "values", "lengths"} <= {field.name for field in dataclasses.fields(part)}
        for one in ("keys", "values")
    ]


def _fields(state: State, prefix: str) -> Iterator[tuple[str, Tensor]]:
    """Tensors with their names, in the order of `State.tensors`."""
    for one in dataclasses.fields(state):
        value = getattr(state, one.name)
        if isinstance(value, Tensor):
            yield f"{prefix}.{one.name}", value
        elif isinstance(value, State):
            yield from _fields(value, f"{prefix}.{one.name}")
        elif isinstance(value, tuple):
            for number, part in enumerate(value):
                yield from _fields(part, f"{prefix}.{number}")


def _parts(state: State, prefix: str) -> Iterator[tuple[str, State]]:
    yield prefix, state
    for one in dataclasses.fields(state):
        value = getattr(state, one.name)
        if isinstance(value, State):
            yield from _parts(value, f"{prefix}.{one.name}")
        elif isinstance(value, tuple):
            for number, part in enumerate(value):
                yield from _parts(part, f"{prefix}.{number}")


def _tokens(vocab_size: int, *shape: int) -> Tensor:
    return torch.randint(vocab_size, shape)


def _length(model: Any) -> int:
    """Tokens of a text that a graph is made with: more than a piece, as a graph of one piece would take no more."""
    piece = _piece(model)
    return max(LENGTH, piece + 1) if piece else LENGTH


def _above(model: Any, most: int | None) -> int:
    """Tokens of a text that is tried besides. most: positions of the model, of each piece of one that reads in them."""
    piece = _piece(model)
    return max(LONGER, 2 * piece + 1) if piece else min(LONGER, most or LONGER)


def _piece(model: Any) -> int:
    return getattr(model, "piece", 0)


def _texts(name: str, reads: str, spec: DataSpec, length: int) -> dict[str, Tensor]:
    """Texts of which the first is `length` long."""
    return {name: _read(reads, spec, length), "lengths": torch.tensor([length, min(2, length), min(3, length)])}


def _others(name: str, reads: str, spec: DataSpec, most: int) -> tuple[dict[str, Tensor], ...]:
    """Texts of one token, of a few, and of `most`."""
    return tuple(_texts(name, reads, spec, length) for length in (1, LENGTH, most))


def _read(reads: str, spec: DataSpec, length: int) -> Tensor:
    """An example of what a model reads."""
    size = spec.source_vocab_size or spec.vocab_size
    if reads == "tokens":
        return _tokens(size, ROWS, length)
    if reads == "words":
        spelt = _tokens(SPELLING_BYTES, ROWS, length, SPELLING_LENGTH)
        forms = [_tokens(spec.n_forms, ROWS, length, KINDS)] if spec.n_forms else []
        return torch.cat([_tokens(size, ROWS, length, 1), spelt, *forms], -1)
    if reads == "pictures" and spec.picture is not None:
        return torch.rand(ROWS, *spec.picture)
    raise UsageError(f"a model that reads {reads} has no ONNX graph")
