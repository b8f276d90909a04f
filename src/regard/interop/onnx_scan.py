"""Recurrences for ONNX: a chunk of any length as a loop over one step, which is ONNX's `Scan`.

torch's fused recurrences, FFTs and chunked scans are other ways to the same numbers (`regard check`, law 1), of which
ONNX knows few, and Python's loops would be written out token by token for one length alone.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context, real_tokens
from regard.core.mixer import Called, Mixer
from regard.core.state import State


class Scanned(Mixer):
    """The same mixer, whose chunks are the steps of a loop that is a part of the graph."""

    def __init__(self, inner: Mixer) -> None:
        super().__init__()
        self.inner = inner
        self.reach, self.permutes = inner.reach, inner.permutes

    def init_state(self, batch_size: int) -> State:
        return self.inner.init_state(batch_size)

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        from torch._higher_order_ops.scan import scan  # loads the compiler

        assert state is not None
        before = state

        def step(carried: list[Tensor], row: tuple[Tensor, Tensor]) -> tuple[list[Tensor], Tensor]:
            y, after = self.inner.step(row[0], filled(before, carried))
            kept = row[1]  # a row whose real tokens have ended keeps its state
            pairs = zip(after.tensors(), carried, strict=True)
            now = [_plain(torch.where(kept.reshape(-1, *[1] * (new.dim() - 1)), new, old)) for new, old in pairs]
            return now, _plain(y)

        real = real_tokens(context.lengths, x)
        last, outputs = scan(step, [_plain(one) for one in before.tensors()], (x.transpose(0, 1), real.transpose(0, 1)))
        return outputs.transpose(0, 1), filled(before, last)


def _plain(tensor: Tensor) -> Tensor:
    """A copy that lies in memory as a new tensor does: what a loop carries has one form."""
    return tensor.clone(memory_format=torch.contiguous_format)


def filled(state: State, tensors: list[Tensor] | tuple[Tensor, ...]) -> State:
    """A state of the same kind with other tensors, in the order of `State.tensors`."""
    following = iter(tensors)
    return state.map(lambda _: next(following))


def scanned(module: nn.Module) -> nn.Module:
    """A copy in which every mixer with a state of fixed size is a loop; weights are shared with the original."""
    weights = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    return _replaced(copy.deepcopy(module, dict(weights)))


def _replaced(module: nn.Module) -> nn.Module:
    if isinstance(module, Mixer) and not module.composed:
        loops = module.causal and not module.state_grows and not module.needs_memory
        return Scanned(module) if loops else module
    for name, child in module.named_children():
        setattr(module, name, _replaced(child))
    return module
