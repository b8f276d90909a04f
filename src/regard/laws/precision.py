"""The law of precision: every number type, alone and under autocast, gives the float64 answer up to its own roundings.

Weights and inputs are rounded to numbers that every type holds, so that what is measured is the arithmetic alone and
one float64 answer serves all types. Errors are counted in roundings of the type, eps of torch.finfo.
"""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.core.context import Context
from regard.core.state import State
from regard.laws.result import Broken, Ledger
from regard.laws.subject import Subject

# Of the root mean square, relative. The largest of all that is registered is 5, of gpt in float32. cuDNN's recurrences
# compute their gates in float32 by shorter series: 65 at most, of an lstm on an H200.
ROUNDINGS, BY_CUDNN = 16.0, 128.0
LENGTH = 6
FIRST = 4  # tokens of the first chunk
STARTS = (4, 1, 2)  # real tokens of each row before it goes on alone


@dataclass(frozen=True)
class Mode:
    """dtype: of weights and inputs. autocast: what torch may turn the inner numbers into."""

    dtype: torch.dtype
    autocast: torch.dtype | None = None

    @property
    def name(self) -> str:
        under = f" under autocast to {_name(self.autocast)}" if self.autocast else ""
        return _name(self.dtype) + under

    @property
    def outputs(self) -> tuple[torch.dtype, ...]:
        """Number types that may come out."""
        return (self.dtype,) if self.autocast is None else (self.dtype, self.autocast)

    @property
    def rounding(self) -> float:
        return torch.finfo(self.autocast or self.dtype).eps

    def running(self) -> AbstractContextManager[object]:
        return (
            nullcontext() if self.autocast is None else torch.autocast(torch.get_default_device().type, self.autocast)
        )


MODES = (
    *(Mode(dtype) for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)),
    *(Mode(torch.float32, dtype) for dtype in (torch.bfloat16, torch.float16)),
)


@torch.no_grad()
def precision(subject: Subject, ledger: Ledger) -> None:
    """Whole, in chunks, in steps and from rows of unequal length, in every number type."""
    recurs = any(isinstance(part, nn.RNNBase) for part in subject.module.modules())
    ledger.tolerance = BY_CUDNN if recurs and torch.get_default_device().type == "cuda" else ROUNDINGS
    exact = replace(subject, module=_rounded(subject.module))
    x = _held_by_all(subject.inputs(len(STARTS), LENGTH))
    expected = exact.whole(x)
    for mode in MODES:
        typed = replace(subject, module=copy.deepcopy(exact.module).to(mode.dtype), dtype=mode.dtype)
        case = _Case(typed, mode, ledger)
        with mode.running():
            case.equal(typed.whole(case.typed(x)), expected, f"{LENGTH} tokens without a state")
            if subject.causal:
                _in_parts(case, x, expected)
                _unequal(case, x, expected)
            else:
                _padded(case, x, exact)


@dataclass(frozen=True)
class _Case:
    """A subject in one number type, and where what it gives is compared."""

    subject: Subject
    mode: Mode
    ledger: Ledger

    def typed(self, x: Tensor, autocast: bool = False) -> Tensor:
        """Vectors in the type of the weights, or in that of autocast, as a layer before it may give them."""
        wanted = self.mode.autocast if autocast and self.mode.autocast else self.mode.dtype
        return x.to(wanted) if x.is_floating_point() else x

    def equal(self, got: Tensor, expected: Tensor, what: str) -> None:
        case = f"{self.mode.name}, {what}"
        if got.dtype not in self.mode.outputs:
            raise Broken(f"{case}: numbers of type {_name(got.dtype)}")
        self.ledger.close(got, expected, case, self.mode.rounding)

    def kept(self, before: State, after: State, what: str) -> None:
        """No call changes the number types of a state."""
        pairs = zip(before.tensors(), after.tensors(), strict=True)
        changed = [(_name(a.dtype), _name(b.dtype)) for a, b in pairs if a.dtype != b.dtype]
        if changed:
            old, new = changed[0]
            raise Broken(f"{self.mode.name}, {what}: a tensor of the state was {old} and became {new}")


def _in_parts(case: _Case, x: Tensor, expected: Tensor) -> None:
    """Two chunks with the state carried, then a step."""
    subject, start = case.subject, case.subject.state(len(x))
    state = start
    for part in (slice(0, FIRST), slice(FIRST, LENGTH - 1)):
        what = f"chunk {part.start} to {part.stop}"
        y, state = subject(case.typed(x[:, part]), state)
        case.equal(y, expected[:, part], what)
        case.kept(start, state, what)
    y, state = subject.one(case.typed(x[:, -1:]), state)
    case.equal(y, expected[:, -1:], "a step after two chunks")
    case.kept(start, state, "a step after two chunks")


def _unequal(case: _Case, x: Tensor, expected: Tensor) -> None:
    """As texts are generated: prompts of unequal length into a state with room, token by token, rows chosen anew."""
    subject, lengths, rows = case.subject, torch.tensor(STARTS), torch.arange(len(STARTS))
    start = subject.state(len(x)).reserve(LENGTH)
    y, state = subject(case.typed(x[:, :FIRST], autocast=True), start, Context(lengths=lengths))
    case.kept(start, state, f"rows of {list(STARTS)} tokens")
    for row, length in enumerate(STARTS):
        case.equal(y[row, :length], expected[row, :length], f"row {row} of {list(STARTS)} tokens")
    for _ in range(2):
        y, state = subject(case.typed(x[rows, lengths][:, None], autocast=True), state)
        case.equal(y[:, 0], expected[rows, lengths], f"one more token after rows of {list(STARTS)}")
        case.kept(start, state, f"one more token after rows of {list(STARTS)}")
        lengths, order = lengths + 1, torch.tensor([2, 0, 0])
        lengths, rows, state = lengths[order], rows[order], state.select(order)


def _padded(case: _Case, x: Tensor, exact: Subject) -> None:
    """Rows of unequal length, for what looks at the future and so has no state to go on from."""
    subject, lengths = case.subject, torch.tensor(STARTS)
    y, _ = subject(case.typed(x[:, :FIRST], autocast=True), subject.state(len(x)), Context(lengths=lengths))
    with torch.autocast(x.device.type, enabled=False):
        alone = [exact.whole(x[row : row + 1, :length])[0] for row, length in enumerate(STARTS)]
    if all(one.numel() == 1 for one in alone):
        # One number is a sum that may come near 0: how exact it is shows beside those of the other rows.
        case.equal(y.flatten(), torch.cat(alone).flatten(), f"rows of {list(STARTS)} tokens")
        return
    for row, one in enumerate(alone):
        case.equal(y[row, : len(one)], one, f"row {row} of {list(STARTS)} tokens")


def _rounded(module: nn.Module) -> nn.Module:
    """A copy in float64 whose weights every number type holds."""
    module = copy.deepcopy(module)
    for parameter in module.parameters():
        parameter.copy_(_held_by_all(parameter))
    return module


def _held_by_all(numbers: Tensor) -> Tensor:
    """The nearest numbers of eight bits within the range of float16, which all types have in common."""
    if not numbers.is_floating_point():
        return numbers
    return numbers.to(torch.bfloat16).to(torch.float16).to(numbers.dtype)


def _name(dtype: torch.dtype | None) -> str:
    return str(dtype).removeprefix("torch.")
