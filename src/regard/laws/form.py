"""Laws of form: a sequence taken whole, in steps, in chunks, padded, packed or selected is the same sequence.

Each function raises `Broken` at its smallest failing case and writes the differences it met into the ledger. Cases go
from short to long, so that the first failure is the minimal one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.core.context import Context
from regard.core.state import State
from regard.laws.result import Broken, Ledger
from regard.laws.subject import Subject
from regard.laws.view import sources

# What padding may hold: a weight of 0 times either must not count.
POISONS = (float("nan"), 1e30)
# Tokens of a text for which there is room; more than any law needs.
ROOM = 16


def lengths_around_chunks(subject: Subject, limit: int = 70) -> list[int]:
    """1, 2, 3 and c - 1, c, c + 1, 2 c + 1 around every internal chunk size c."""
    found = {1, 2, 3, 7}
    for c in subject.chunk_sizes:
        found |= {c - 1, c, c + 1, 2 * c + 1}
    return sorted(length for length in found if 1 <= length <= limit)


@torch.no_grad()
def step(subject: Subject, ledger: Ledger) -> None:
    """Scanning `step` equals `forward`, from zero and from non-zero states; so does the form that drops the state."""
    for length in lengths_around_chunks(subject):
        for seen in (0, 3):
            x = subject.inputs(2, length)
            whole, last = subject(x, subject.state(2, seen))
            state, rows = subject.state(2, seen), []
            for t in range(length):
                y, state = subject.one(x[:, t : t + 1], state)
                rows.append(y)
            case = f"{length} steps against one forward, {seen} tokens seen before"
            ledger.equal(torch.cat(rows, 1), whole, case)
            same_future(subject, ledger, state, last, case)
            if seen == 0:
                ledger.equal(subject.whole(x), whole, f"{length} tokens, outputs without a state against with one")


@torch.no_grad()
def chunk(subject: Subject, ledger: Ledger) -> None:
    """Any split with the state carried equals the whole, around every internal chunk size."""
    sizes = lengths_around_chunks(subject)
    for first in [0, *sizes]:
        for second in (s for s in sizes if s in (1, 3) or s in subject.chunk_sizes or s == sizes[-1]):
            for seen in (0, 2):
                x = subject.inputs(2, first + second)
                whole, last = subject(x, subject.state(2, seen))
                a, state = subject(x[:, :first], subject.state(2, seen))
                b, state = subject(x[:, first:], state)
                case = f"{first} + {second} tokens against {first + second}, {seen} seen before"
                ledger.equal(torch.cat([a, b], 1), whole, case)
                same_future(subject, ledger, state, last, case)


@torch.no_grad()
def causality(subject: Subject, ledger: Ledger) -> None:
    """Changing position t changes no output before t."""
    for length in (2, 5, *(c + 2 for c in subject.chunk_sizes)):
        x = subject.inputs(2, length)
        base = subject(x, subject.state(2))[0]
        for t in {1, length // 2, length - 1}:
            y = subject(subject.changed(x, t), subject.state(2))[0]
            ledger.equal(y[:, :t], base[:, :t], f"{length} tokens, position {t} changed, outputs before it")


@torch.no_grad()
def padding(subject: Subject, ledger: Ledger) -> None:
    """A padded batch equals its members one by one, states included, also in a second padded chunk.

    Padding may hold anything: NaN and 1e30 in it reach nothing that is real.
    """
    for length in (2, 5, *(c + 1 for c in subject.chunk_sizes)):
        lengths = torch.tensor([length, 1, max(1, length // 2), 0 if subject.causal else 1])
        x = subject.inputs(4, length)
        y, state = subject(x, subject.state(4), Context(lengths=lengths))
        alone = []
        for row, count in enumerate(lengths.tolist()):
            alone_y, alone_state = subject(x[row : row + 1, :count], subject.state(1))
            ledger.equal(y[row : row + 1, :count], alone_y, f"lengths {lengths.tolist()}, row {row} against alone")
            alone.append(alone_state)
        if subject.causal:
            _padded_states(subject, ledger, state, alone, f"after lengths {lengths.tolist()}")
    for poison in POISONS if subject.scale == 1 else ():
        _poisoned(subject, ledger, poison)


def _poisoned(subject: Subject, ledger: Ledger, poison: float) -> None:
    """Rows beside poison in their padding equal their members alone, now and in what follows."""
    subject, lengths = subject.poisoned(poison), torch.tensor([6, 1, 4])
    x, more = subject.with_padding(subject.inputs(3, 6), lengths, poison), subject.inputs(3, 2, seed=5)
    y, state = subject(x, subject.state(3), Context(lengths=lengths))
    later = subject(more, state)[0] if subject.causal else more
    for row, count in enumerate(lengths.tolist()):
        one, case = slice(row, row + 1), f"{poison:g} in the padding after {count} tokens"
        alone_y, alone = subject(x[one, :count], subject.state(1))
        ledger.equal(subject.told(y[one, :count]), subject.told(alone_y), case)
        if subject.causal:
            alone_later = subject(more[one], alone)[0]
            ledger.equal(subject.told(later[one]), subject.told(alone_later), f"{case}, outputs after it")


def _padded_states(subject: Subject, ledger: Ledger, state: State, alone: list[State], case: str) -> None:
    """Each row of a padded batch's state equals the state of its sequence alone, now and after a second chunk."""
    lengths = torch.tensor([1, 4, 0, 3])
    more = subject.inputs(4, 4, seed=7)
    y, later = subject(more, state, Context(lengths=lengths))
    for row, count in enumerate(lengths.tolist()):
        picked, place = torch.tensor([row]), f"{case}, row {row} against alone"
        same_state(ledger, state.select(picked), alone[row], place)
        alone_y, alone_later = subject(more[row : row + 1, :count], alone[row])
        ledger.equal(y[row : row + 1, :count], alone_y, f"{place}, then {count} of 4 more tokens")
        same_state(ledger, later.select(picked), alone_later, f"{place}, after a second chunk")
        same_future(subject, ledger, later.select(picked), alone_later, f"{place}, after a second chunk")


@torch.no_grad()
def source(subject: Subject, ledger: Ledger) -> None:
    """A padded batch of sources equals its members one by one, and the memory in the context that in the state."""
    whole: Any = subject.module
    model, (given, lengths) = whole.model, sources(whole.model.reads, 4)
    x, after_padding = subject.inputs(4, 3), Context(lengths=torch.tensor([3, 1, 2, 3]))
    together = model.given(given, lengths)
    y, state = together(x, together.init_state(4), after_padding)
    for row, count in enumerate(after_padding.lengths.tolist()):  # pyright: ignore[reportOptionalMemberAccess]
        size = None if lengths is None else int(lengths[row])
        alone = model.given(given[row : row + 1, :size] if size else given[row : row + 1])
        case = f"sources of {'full' if lengths is None else lengths.tolist()} length, row {row} against alone"
        alone_y, alone_state = alone(x[row : row + 1, :count], alone.init_state(1))
        ledger.equal(y[row : row + 1, :count], alone_y, case)
        same_future(subject, ledger, state.select(torch.tensor([row])), alone_state, case)
    if lengths is not None:
        _poisoned_source(subject, ledger, y, after_padding)
    memory, memory_lengths = model.encode(given, lengths)
    context = replace(after_padding, memory=memory, memory_lengths=memory_lengths)
    trained, _ = model(x, None, context)
    for row, count in enumerate(after_padding.lengths.tolist()):  # pyright: ignore[reportOptionalMemberAccess]
        ledger.equal(trained[row, :count], y[row, :count], f"memory in the context against in the state, row {row}")


def _poisoned_source(subject: Subject, ledger: Ledger, expected: Tensor, context: Context) -> None:
    """What stands in the padding of a source reaches nothing that is written."""
    model: Any = subject.module
    given, lengths = sources(model.model.reads, 4)
    assert lengths is not None
    assert context.lengths is not None
    for poison in POISONS:
        sick = subject.poisoned(poison)
        whole: Any = sick.module
        together = whole.model.given(sick.with_padding(given, lengths, poison), lengths)
        y, _ = together(sick.inputs(4, 3), together.init_state(4), context)
        for row, count in enumerate(context.lengths.tolist()):
            case = f"{poison:g} in the padding of source {row}"
            ledger.equal(sick.told(y[row, :count]), sick.told(expected[row, :count]), case)


def packing(subject: Subject, ledger: Ledger) -> None:
    """Sequences packed end to end equal one by one: outputs, final states, gradients; with states and without, which
    is how a model is trained and may be a path of its own."""
    sizes = [3, 1, 17, 5, *(c + 1 for c in subject.chunk_sizes[:1])]
    offsets = torch.tensor([0, *torch.tensor(sizes).cumsum(0).tolist()])
    x = subject.inputs(1, sum(sizes))
    y, state = subject(x, subject.state(len(sizes)), Context(offsets=offsets))
    packed = gradients(subject, y)
    stateless = subject.whole(x, Context(offsets=offsets))
    trained = gradients(subject, stateless)
    pieces, alone_states = [], []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        piece, alone = subject(x[:, start:stop], subject.state(1))
        pieces.append(piece)
        alone_states.append(alone)
    ledger.equal(y, torch.cat(pieces, 1), f"packed lengths {sizes} against one by one")
    ledger.equal(stateless, torch.cat(pieces, 1), f"packed lengths {sizes} without a state against one by one")
    for name, expected in gradients(subject, torch.cat(pieces, 1)).items():
        ledger.equal(packed[name], expected, f"gradient of {name}, packed lengths {sizes} against one by one")
        ledger.equal(trained[name], expected, f"gradient of {name}, packed lengths {sizes} without a state")
    if subject.causal:
        for row, alone in enumerate(alone_states):
            case = f"state of packed sequence {row} of lengths {sizes}"
            same_future(subject, ledger, state.select(torch.tensor([row])), alone, case)


@torch.no_grad()
def select(subject: Subject, ledger: Ledger) -> None:
    """`select` commutes with `forward`: rows repeated, dropped and reordered; `reorder` in slots is the same."""
    index = torch.tensor([2, 0, 0, 1])
    for seen in (0, 3):
        x = subject.inputs(3, 4)
        y, after = subject(x, subject.state(3, seen))
        chosen_y, chosen = subject(x[index], subject.state(3, seen).select(index))
        case = f"rows {index.tolist()} selected before against after, {seen} tokens seen before"
        ledger.equal(chosen_y, y[index], case)
        if subject.causal:
            same_future(subject, ledger, chosen, after.select(index), case)
            _reorders(subject, ledger, seen)


def _reorders(subject: Subject, ledger: Ledger, seen: int) -> None:
    """A row copied over another, and one over another as the last is given up."""
    for rows, moved in (([0, 0, 2], [1]), ([2, 1], [0])):
        index, case = torch.tensor(rows), f"rows {rows} reordered against selected, {seen} tokens seen before"
        slots = subject.state(3, seen).reserve(ROOM)
        same_future(
            subject, ledger, slots.reorder(index, torch.tensor(moved)), subject.state(3, seen).select(index), case
        )


@torch.no_grad()
def position(subject: Subject, _ledger: Ledger) -> None:
    """`state.position` advances by the tokens read, in every part of a state: by chunks, by rows and by steps."""
    lengths = torch.tensor([4, 1, 2])
    for seen in (0, 3):
        state = subject.state(3, seen)
        read = torch.full((3,), seen)
        stands(state, read, f"{seen} tokens")
        stands(subject(subject.inputs(3, 4), state)[1], read + 4, f"{seen} + 4 tokens")
        _, after = subject(subject.inputs(3, 4), subject.state(3, seen), Context(lengths=lengths))
        stands(after, read + lengths, f"{seen} + {lengths.tolist()} tokens")
        order = torch.tensor([2, 0, 0])
        stands(after.select(order), (read + lengths)[order], f"rows {order.tolist()} of {seen} + {lengths.tolist()}")
        if subject.causal:
            _, after = subject.one(subject.inputs(3, 1), after)
            stands(after, read + lengths + 1, f"{seen} + {lengths.tolist()} tokens and a step")


def stands(state: State, read: Tensor, case: str) -> None:
    """Every part of a state stands where `read` (B,) tokens lead."""
    for part in state.parts_within():
        if part.position.tolist() != read.tolist():
            found = f"{type(part).__name__}.position is {part.position.tolist()}"
            raise Broken(f"{found} after {case}, which are {read.tolist()}")


def same_state(ledger: Ledger, got: State, expected: State, case: str) -> None:
    """Position, and every tensor whose size does not depend on how the state was made."""
    ledger.equal(got.position, expected.position, case + ", position of the state")
    for i, (a, b) in enumerate(zip(got.tensors(), expected.tensors(), strict=True)):
        if a.shape == b.shape:
            ledger.equal(a, b, case + f", tensor {i} of {type(got).__name__}")


def same_future(subject: Subject, ledger: Ledger, got: State, expected: State, case: str) -> None:
    """Two states are equal when what follows them is."""
    x = subject.inputs(got.batch_size, 2, seed=5)
    ledger.equal(subject(x, got)[0], subject(x, expected)[0], case + ", outputs after it")
    ledger.equal(got.position, expected.position, case + ", position after it")


def gradients(subject: Subject, y: Tensor) -> dict[str, Tensor]:
    """Of an uneven sum of the outputs, by parameter."""
    weights = torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)
    named = dict(subject.module.named_parameters())
    if not named:
        return {}
    found = torch.autograd.grad((y * weights).sum(), list(named.values()), allow_unused=True)
    pairs = zip(named.items(), found, strict=True)
    return {name: torch.zeros_like(p) if gradient is None else gradient for (name, p), gradient in pairs}
