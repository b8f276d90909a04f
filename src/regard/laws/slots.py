"""Laws of slots: a state of fixed size equals one that grows, and rows come and go without touching each other."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from regard.core.context import Context
from regard.core.state import State
from regard.laws.form import POISONS, ROOM, same_state, stands
from regard.laws.result import Broken, Ledger
from regard.laws.subject import Subject

# Vectors of a memory for which there is room; more than any law here needs.
MEMORY = 9
# Real tokens of the rows that are there before others come.
STANDING = (4, 1, 2)


@torch.no_grad()
def reserve(subject: Subject, ledger: Ledger) -> None:
    """A state of fixed size equals a grown one, for equal and unequal rows.

    No shape and no constant of it changes from step to step, and a token beyond its room is refused on the host.
    """
    for lengths in (None, torch.tensor([3, 1])):
        for room in (9, 12):
            x, context = subject.inputs(2, 3), Context(lengths=lengths)
            _, grown = subject(x, subject.state(2), context)
            _, reserved = subject(x, subject.state(2).reserve(room), context)
            later, case = grown.reserve(room), f"{'3' if lengths is None else lengths.tolist()} tokens, room for {room}"
            for t in range(6):
                token = subject.inputs(2, 1, seed=50 + t)
                expected, grown = subject(token, grown)
                got, reserved = _constant(subject, token, reserved, f"step {t} after {case}")
                ledger.equal(got, expected, f"step {t} after {case}, reserved before the first token")
                got, later = _constant(subject, token, later, f"step {t} after {case}")
                ledger.equal(got, expected, f"step {t} after {case}, reserved after them")
            # To know it on a device would be to wait for it: there a token too many is counted and not kept.
            if subject.facts.state_grows and room == 9 and later.position.device.type == "cpu":
                _refuses(subject, later, f"a token after all of {case}")


def _constant(subject: Subject, x: Tensor, state: State, case: str) -> tuple[Tensor, State]:
    """A call that must leave everything about a state as it is but the numbers in its tensors."""
    before = _form(state)
    y, after = subject(x, state)
    if _form(after) != before:
        raise Broken(f"{case}: a shape or a constant of a reserved state changed")
    return y, after


def _form(value: Any) -> object:
    """All of a state but the numbers in its tensors."""
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, State):
        return type(value), [_form(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return [_form(part) for part in value] if isinstance(value, tuple) else value


def _refuses(subject: Subject, full: State, case: str) -> None:
    try:
        subject(subject.inputs(full.batch_size, 1), full)
    except ValueError:
        return
    raise Broken(f"{case} was not refused")


@torch.no_grad()
def insert(subject: Subject, ledger: Ledger) -> None:
    """Rows inserted among others go on as they would alone, with the memory that they have met.

    The others go on as if nothing had happened. Into a state that grows, into slots, and into slots that are all empty.
    """
    guests, rows = subject.elsewhere(), torch.tensor([2, 0])
    for seen in (0, 3):
        _, other = guests(guests.inputs(2, seen, seed=11), guests.state(2))
        alone = {row: (guests, other.select(torch.tensor([i]))) for i, row in enumerate(rows.tolist())}
        for reserved in (False, True):
            case = f"rows of {seen} tokens into rows of {list(STANDING)}{' with room' if reserved else ''}"
            mixed = _inserted(ledger, _standing(subject, reserved), rows, other, case, reserved)
            stands(mixed, torch.tensor([seen, STANDING[1], seen]), case)
            stays = subject, _standing(subject, reserved).select(torch.tensor([1]))
            _go_on(subject, ledger, mixed, {1: stays, **alone}, case)
        case = f"rows of {seen} tokens into empty slots"
        slots = subject.state(3).reserve(ROOM, MEMORY).insert(rows, other)
        stands(slots, torch.tensor([seen, 0, seen]), case)
        _go_on(subject, ledger, slots, alone, case)


def _standing(subject: Subject, reserved: bool) -> State:
    """Rows at different positions; where they are reserved, with room for more."""
    context = Context(lengths=torch.tensor(STANDING))
    _, state = subject(subject.inputs(len(STANDING), max(STANDING)), subject.state(len(STANDING)), context)
    return state.reserve(ROOM, MEMORY) if reserved else state


def _inserted(ledger: Ledger, state: State, rows: Tensor, other: State, case: str, reserved: bool) -> State:
    """`other` in `state`: a reserved one keeps its form. Any other one stays as it was, and so does `other`."""
    form, kept = _form(state), [*other.tensors(), *(() if reserved else state.tensors())]
    before = [tensor.clone() for tensor in kept]
    mixed = state.insert(rows, other)
    if reserved and _form(mixed) != form:
        raise Broken(f"{case}: a shape or a constant of a reserved state changed")
    for tensor, old in zip(kept, before, strict=True):
        ledger.equal(tensor, old, f"{case}, a state that was to stay as it was")
    return mixed


def _go_on(subject: Subject, ledger: Ledger, state: State, alone: dict[int, tuple[Subject, State]], case: str) -> None:
    """A chunk and two steps: each row of `state` that is named equals the one that goes on alone."""
    for number, length in enumerate((2, 1, 1)):
        x = subject.inputs(state.batch_size, length, seed=60 + number)
        y, state = subject(x, state)
        for row, (owner, single) in alone.items():
            one, after = slice(row, row + 1), f"{case}, row {row} after it, call {number}"
            expected, single = owner(x[one], single)
            ledger.equal(subject.told(y[one]), subject.told(expected), after)
            alone = {**alone, row: (owner, single)}


@torch.no_grad()
def free(subject: Subject, ledger: Ledger) -> None:
    """A freed row is as before any token: of two pasts nothing is left that tells them apart, not even NaN or 1e30.

    It goes on from the beginning, a row inserted in its place as it would alone, the others as if nothing had happened.
    """
    row = torch.tensor([1])
    for poison in POISONS:
        sick = subject.poisoned(poison)
        for reserved in (False, True):
            case = f"row 1 freed after {poison:g}{' with room' if reserved else ''}"
            freed = _after(sick, poison, reserved).free(row)
            stands(freed, torch.tensor([4, 0, 4]), case)
            same_state(ledger, freed.select(row), _after(sick, None, reserved).free(row).select(row), case)
            healthy = _after(sick, None, reserved)
            others = {i: (sick, healthy.select(torch.tensor([i]))) for i in (0, 2)}
            fresh = {} if subject.looks_outside else {1: (sick, sick.state(1))}
            _go_on(sick, ledger, freed, {**others, **fresh}, case)
            guests = sick.elsewhere()
            _, other = guests(guests.inputs(1, 2, seed=11), guests.state(1))
            slots = _after(sick, poison, reserved).free(row).insert(row, other)
            _go_on(sick, ledger, slots, {**others, 1: (guests, other)}, f"{case} and taken again")


def _after(subject: Subject, poison: float | None, reserved: bool) -> State:
    """Three rows of four tokens, the middle one of nothing but poison where there is some."""
    x = subject.inputs(3, 4)
    if poison is not None:
        x = subject.with_padding(x, torch.tensor([4, 0, 4]), poison)
    _, state = subject(x, subject.state(3))
    return state.reserve(ROOM, MEMORY) if reserved else state
