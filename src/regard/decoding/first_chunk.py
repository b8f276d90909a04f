"""First chunks of prompts: where their shapes are few, a CUDA graph for each, as of steps (capture.py).

Reading some dozen tokens of a few rows is as many launches as a step is, and a host takes longer over them than the
device. What comes of a graph lies in its memory: it is good until the next chunk is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.context import Context
from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.capture import Captured


class FirstChunks:
    """Chunks by their length, all with the same number of rows."""

    def __init__(self, model: TokenModel, device: torch.device, graphs: bool) -> None:
        self.model, self.device = model, device
        self.captured = Captured(device, graphs)
        self.inputs: dict[int, tuple[Tensor, Tensor]] = {}
        self.found: dict[int, tuple[Tensor, State]] = {}

    def read(self, tokens: Int[Tensor, "B T"], real: Sequence[int]) -> tuple[Float[Tensor, "B D"], State]:
        """Vectors of each row's last token, of which it has `real` here, and the state after them."""
        length = tokens.shape[1]
        if length not in self.inputs:
            self.inputs[length] = torch.zeros_like(tokens), torch.zeros(len(tokens), dtype=torch.long).to(self.device)
        given, lengths = self.inputs[length]
        given.copy_(tokens)
        lengths.copy_(torch.tensor(real))
        self.captured.run(str(length), lambda: self._make(given, lengths), (lengths,), lengths)
        return self.found[length] if self.captured.records else self.found.pop(length)

    def close(self) -> None:
        """Give up the memory."""
        self.inputs.clear()
        self.found.clear()
        self.captured.forget()

    def _make(self, tokens: Tensor, lengths: Tensor) -> None:
        values, state = self.model(tokens, self.model.init_state(len(tokens)), Context(lengths=lengths))
        rows = torch.arange(len(tokens), device=self.device)
        self.found[tokens.shape[1]] = values[rows, (lengths - 1).clamp(min=0)], state
