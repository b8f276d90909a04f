"""Held: a state that whoever decodes owns, and the model that reads into it, one token a row.

All decoding holds its state so: the slots of the engine (slots.py), whose rows are texts that come and go, and the
beams (beam.py), whose rows are copied at every step.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.context import Context, Owned
from regard.core.model import TokenModel
from regard.core.state import State, where_row
from regard.decoding.capture import Captured


class Held:
    """A state of B rows.

    captured  its steps as graphs, for which every tensor stays where it is, and which are forgotten when one has to
              move; None where none are made.
    """

    def __init__(self, model: TokenModel, captured: Captured | None = None) -> None:
        self.model, self.captured = model, captured
        self._state: State | None = None

    @property
    def state(self) -> State:
        assert self._state is not None
        return self._state

    def close(self) -> None:
        """Give up all rows and their memory."""
        self._state = None
        if self.captured is not None:
            self.captured.forget()

    def hold(self, state: State) -> None:
        """A state of another form; what was captured is of no use then, unless all tensors are the same."""
        if self.captured is None:
            self._state = state
            return
        before = [] if self._state is None else [id(tensor) for tensor in self._state.tensors()]
        self._state = _apart(state)
        if before != [id(tensor) for tensor in self._state.tensors()]:
            self.captured.forget()

    def reserve(self, room: int) -> None:
        """Room for so many tokens in every row."""
        self.hold(self.state.reserve(room))

    def insert(self, rows: Int[Tensor, "n"], state: State) -> None:
        """The rows of another state in the place of these."""
        self._take(self.state.insert(rows, state))

    def free(self, rows: Int[Tensor, "n"]) -> None:
        """Nothing is left of these rows."""
        self._take(self.state.free(rows))

    def reorder(self, index: Int[Tensor, "m"], moved: Int[Tensor, "n"]) -> None:
        """Rows `index`, of which those at `moved` did not stand there before (State.reorder)."""
        self.hold(self.state.reorder(index, moved))

    def feed(self, last: Int[Tensor, "B 1"], alive: Bool[Tensor, "B"] | None = None) -> Float[Tensor, "B V"]:
        """Every row reads a token; the logits of the next. A row that is not alive keeps its state; None: all are."""
        owned = None if self.captured is None or alive is None else Owned(alive)
        vectors, after = self.model(last, self.state, Context(owned=owned))
        logits = self.model.head(vectors[:, -1])
        if owned is not None:
            self._keep(after, owned)
        else:
            self._state = after if alive is None else where_row(alive, after, self.state)
        return logits

    def _keep(self, after: State, owned: Owned) -> None:
        """The state after a step, in the rows that go on, and the positions that the step has left to be advanced."""
        alive, counts, changed = owned.alive, owned.counts, []
        for held, new in _changed(self.state, after):
            if held.dim() == 1 and held.dtype == torch.long:
                changed.append((held, new))
            else:
                torch.where(alive.view(-1, *[1] * (held.dim() - 1)), new, held, out=held)
        # Every layer counts its tokens: all of them in few launches.
        steps = alive.long()
        if changed:
            held, new = (list(column) for column in zip(*changed, strict=True))
            difference = torch._foreach_sub(new, held)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_mul_(difference, [steps] * len(held))  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_add_(held, difference)  # pyright: ignore[reportPrivateImportUsage]
        if counts:
            torch._foreach_add_(counts, [steps] * len(counts))  # pyright: ignore[reportPrivateImportUsage]

    def _take(self, state: State) -> None:
        """A state of the same form: where tensors have to stay in their places, its numbers only."""
        if self.captured is None:
            self._state = state
            return
        pairs = _changed(self.state, state)
        if any(held.shape != new.shape for held, new in pairs):
            self.hold(state)
            return
        for held, new in pairs:
            held.copy_(new)


def _changed(state: State, after: State) -> list[tuple[Tensor, Tensor]]:
    """Tensors of a state and what they are to become. What a field hands on to another is copied before it is gone."""
    pairs = [(held, new) for held, new in zip(state.tensors(), after.tensors(), strict=True) if new is not held]
    places = {held.untyped_storage().data_ptr() for held, _ in pairs}
    return [(held, new.clone() if new.untyped_storage().data_ptr() in places else new) for held, new in pairs]


def _apart(state: State) -> State:
    """The same state, no two of whose tensors share memory, so that each can be written in place."""
    seen: set[int] = set()

    def own(tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address in seen or not tensor.is_contiguous():
            return tensor.clone(memory_format=torch.contiguous_format)
        seen.add(address)
        return tensor

    return state.map(own)
