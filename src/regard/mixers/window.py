"""Fixed window: the feed-forward language model's view of the past (Bengio et al. 2003).

    y_t = g(W [x_(t-W+1) ; .. ; x_t] + b)

Places before the beginning are zero vectors. Sensitive to order inside the window, blind to everything before it.
The state is the last W - 1 vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, last_real, places_within
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, zero_position
from regard.core.tap import Tap
from regard.layers.linear import ACTIVATIONS, Activation


@dataclass(frozen=True)
class WindowState(State):
    """recent (B, W - 1, D): the last vectors, oldest first."""

    recent: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class WindowConfig(MixerConfig, kind="window"):
    """window: how many vectors are seen, the current one included. d_hidden: inner width, projected back to d_model."""

    window: int = 4
    d_hidden: int | None = None
    activation: Activation = "tanh"

    def __post_init__(self) -> None:
        check(self.window >= 1, f"window must be at least 1, found {self.window}")
        check(self.d_hidden is None or self.d_hidden > 0, f"d_hidden must be positive, found {self.d_hidden}")

    def build(self) -> Window:
        return Window(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"window": cls(8, 3), "window-1": cls(8, 1), "window-hidden": cls(8, 3, 12)}


class Window(Mixer):
    """A linear map of the last vectors side by side, and an activation."""

    packs = True
    writes_to_stream = ("hidden_to_output",)

    def __init__(self, config: WindowConfig) -> None:
        super().__init__()
        self.window, self.d_model = config.window, config.d_model
        self.reach = config.window
        self.received = Tap()
        self.permutes = config.window == 1
        d_hidden = config.d_hidden or config.d_model
        self.window_to_hidden = nn.Linear(config.window * config.d_model, d_hidden)
        self.activation = ACTIVATIONS[config.activation]
        self.hidden_to_output = nn.Linear(d_hidden, config.d_model) if config.d_hidden else nn.Identity()

    def init_state(self, batch_size: int) -> State:
        recent = self.zeros(batch_size, self.window - 1, self.d_model)
        return WindowState(recent, zero_position(batch_size, recent.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, WindowState)
        x = self.received(x)
        if context.offsets is not None:
            return self._output(self._windows_packed(x, context.offsets)), None
        seen = torch.cat([state.recent.to(x.dtype), x], 1)  # (B, W - 1 + T, D)
        y = self._output(seen.unfold(1, self.window, 1).transpose(2, 3))
        recent = last_real(seen, context.lengths, self.window - 1).to(state.recent.dtype)
        return y, WindowState(recent, advance(state.count, x.shape[1], context.lengths))

    def _windows_packed(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Windows (1, P, W, D) of sequences end to end; what lies before the beginning of each is zero."""
        windows = F.pad(x, (0, 0, self.window - 1, 0)).unfold(1, self.window, 1).transpose(2, 3)
        age = torch.arange(self.window - 1, -1, -1, device=offsets.device)
        foreign = places_within(offsets)[:, None] < age  # (P, W)
        return windows.masked_fill(foreign.to(x.device)[None, ..., None], 0)

    def _output(self, windows: Tensor) -> Tensor:
        """Windows (B, T, W, D) side by side, mapped to (B, T, D)."""
        return self.hidden_to_output(self.activation(self.window_to_hidden(windows.flatten(2))))
