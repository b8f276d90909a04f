"""Mamba: a state space whose step, input and output maps depend on the token (Gu and Dao 2023).

    x, z = W_in input                          two streams of width E
    x = silu(conv(x))                          short causal convolution
    dt, B, C = from x                          dt = softplus(W_dt (W_x x) + b), B and C of width N
    h_t = exp(dt_t A) h_(t-1) + dt_t B_t x_t   the selective scan, each channel with N states
    y_t = C_t h_t + D x_t
    output = W_out (y * silu(z))

Glossary
E   inner width, expand x d_model         N   state size of a channel
A   (E, N), negative: -exp(log_decay)     dt  step, per token and channel, through a map of rank R
D   (E,), skip                            h   state, (B, E, N)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, real_tokens
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, stepped, zero_position
from regard.core.tap import Tap
from regard.kernels.operators import if_built
from regard.kernels.selective_scan import CHUNK, gated_scan_takes, gated_selective_scan, selective_scan, selective_step
from regard.kernels.state_step import step_kernels_take
from regard.layers.convolution import CausalConvolution
from regard.layers.linear import Linear


@dataclass(frozen=True)
class SelectiveState(State):
    """memory (B, E, N) or (B, H, P, N): h. recent (B, W - 1, E'): the last inputs of the convolution."""

    memory: Tensor
    recent: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class MambaConfig(MixerConfig, kind="mamba"):
    """d_state: N. expand: E / d_model. window: of the convolution. rank: R, None for d_model / 16 rounded up."""

    d_state: int = 16
    expand: int = 2
    window: int = 4
    rank: int | None = None

    def __post_init__(self) -> None:
        check(min(self.d_model, self.d_state, self.expand, self.window) > 0, "mamba's sizes must be positive")
        check(self.rank is None or self.rank > 0, f"rank must be positive, found {self.rank}")

    def build(self) -> Mamba:
        return Mamba(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"mamba": cls(8, 4), "mamba-window-1": cls(8, 3, window=1, rank=2)}


class Mamba(Mixer):
    """The selective scan over a chunk or one step of it, from any state."""

    chunk_sizes = (CHUNK,)
    writes_to_stream = ("hidden_to_output",)

    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        self.inner = config.expand * config.d_model
        self.rank = config.rank or math.ceil(config.d_model / 16)
        self.d_state, self.window = config.d_state, config.window
        self.input_to_streams = Linear(config.d_model, 2 * self.inner, bias=False)
        self.convolution = CausalConvolution(self.inner, config.window)
        self.stream_to_selection = Linear(self.inner, self.rank + 2 * config.d_state, bias=False)
        self.rank_to_step = Linear(self.rank, self.inner)
        decays = torch.arange(1.0, config.d_state + 1, device="cpu")  # not on meta, see S4d
        self.log_decay = nn.Parameter(torch.empty(self.inner, config.d_state).copy_(torch.log(decays)))
        self.skip = nn.Parameter(torch.ones(self.inner))
        self.hidden_to_output = Linear(self.inner, config.d_model, bias=False)
        self.stream, self.steps, self.inputs, self.readers = (Tap() for _ in range(4))
        initialise_steps(self.rank_to_step.weight, self.rank_to_step.bias, self.rank)

    def init_state(self, batch_size: int) -> State:
        memory = self.zeros(batch_size, self.inner, self.d_state, dtype=self.dtype_of_sums())
        recent = self.zeros(batch_size, self.window - 1, self.inner)
        return SelectiveState(memory, recent, zero_position(batch_size, memory.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, SelectiveState)
        stream, gate = self.input_to_streams(x).chunk(2, -1)  # (B, T, E)
        stream, recent = self.convolution(stream, state.recent, context.lengths)
        stream = self.stream(stream)
        step, write, read = self._select(stream)
        if context.lengths is not None:
            # Softplus of it is a step of length 0, which writes nothing and forgets nothing: padding leaves the state
            # as it is.
            step = step.masked_fill(~real_tokens(context.lengths, x)[..., None], float("-inf"))
        chosen = (self._decay(), write, read, state.memory)
        given = (stream, step, *chosen, self.skip, gate)
        if not self.steps.recorded and gated_scan_takes(*given):
            y, memory = gated_selective_scan(*given)
        else:
            step = self.steps(F.softplus(step))
            y, memory = selective_scan(stream, step, *chosen)
            y = self._gated(y, stream, gate)
        y = self.hidden_to_output(y)
        return y, SelectiveState(memory, recent, advance(state.count, x.shape[1], context.lengths))

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, SelectiveState)
        stream, gate = self.input_to_streams(x).chunk(2, -1)  # (B, E)
        stream, recent = self.convolution(stream[:, None], state.recent, None, context.owned)
        stream = self.stream(stream[:, 0])
        step, write, read = self._select(stream)
        fast = step_kernels_take(stream, state.memory, self.log_decay, self.skip, gate) and not self.steps.recorded
        alive = None if context.owned is None else context.owned.alive
        given = (stream, step, write, read, state.memory, gate, alive)
        found = if_built("the selective scan of one token", self._step_by_kernel, *given) if fast else None
        if found is None:
            step = self.steps(F.softplus(step))
            y, memory = selective_step(stream, step, self._decay(), write, read, state.memory)
            found = self._gated(y, stream, gate), memory
        y, memory = self.hidden_to_output(found[0]), found[1]
        return y, SelectiveState(memory, recent, stepped(state.count, context.owned))

    def _step_by_kernel(
        self, u: Tensor, raw: Tensor, b: Tensor, c: Tensor, h: Tensor, z: Tensor, alive: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        from regard.kernels.state_step_triton import gated_selective_step

        return gated_selective_step(u, raw, self.log_decay, b, c, h, self.skip, z, alive)

    def _decay(self) -> Tensor:
        """A, in float32 at least: a rounded decay is another memory."""
        return -self.log_decay.to(self.dtype_of_sums()).exp()

    def _gated(self, y: Tensor, stream: Tensor, gate: Tensor) -> Tensor:
        return (y + self.skip * stream) * F.silu(gate)

    def _select(self, stream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """dt before softplus (..., E), B (..., N) and C (..., N) of each token."""
        rank, write, read = self.stream_to_selection(stream).split([self.rank, self.d_state, self.d_state], -1)
        return self.rank_to_step(rank), self.inputs(write), self.readers(read)


@torch.no_grad()
def initialise_steps(weight: Tensor | None, bias: Tensor, rank: int) -> None:
    """dt log-uniform in [0.001, 0.1] at the start: the bias is the inverse softplus of it."""
    if weight is not None:
        weight.uniform_(-(rank**-0.5), rank**-0.5)
    chance = torch.rand(bias.shape, device="cpu")
    step = torch.exp(chance * (math.log(0.1) - math.log(0.001)) + math.log(0.001)).clamp(min=1e-4)
    bias.copy_(step + torch.log(-torch.expm1(-step)))
