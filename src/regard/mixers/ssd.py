"""SSD: the state space of Mamba-2, which is also a masked attention (Dao and Gu 2024), in three equal forms.

    h_t = exp(dt_t A) h_(t-1) + dt_t B_t x_t        y_t = C_t h_t          recurrent, (P, N) states a head
    y = (L * (C B^T)) (dt x),  L_ij = exp(sum_(j < k <= i) dt_k A)         quadratic: attention with decay for softmax
    chunked: the quadratic form inside chunks, the recurrence between them

Glossary
H   heads, E / P       P   width of a head       G   groups of heads that share B and C
A   (H,) one negative decay rate a head          dt  (B, T, H) step, softplus(W x + b)
N   state size         L   (T, T) lower triangular decays
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, Owned, real_tokens
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, stepped, zero_position
from regard.core.tap import Tap, is_heard
from regard.kernels.operators import if_built
from regard.kernels.ssd import ssd, ssd_kernels_take
from regard.kernels.ssd_readable import ssd_chunked, ssd_recurrent
from regard.kernels.state_step import step_kernels_take
from regard.layers.convolution import CausalConvolution
from regard.layers.gated_norm import GatedRmsNorm
from regard.layers.linear import Linear
from regard.mixers.mamba import SelectiveState, initialise_steps


@dataclass(frozen=True)
class SsdConfig(MixerConfig, kind="ssd"):
    """d_state: N. d_head: P. n_groups: G. expand: E / d_model. window: of the convolution. chunk: inner length."""

    d_state: int = 64
    d_head: int = 64
    n_groups: int = 1
    expand: int = 2
    window: int = 4
    chunk: int = 64

    def __post_init__(self) -> None:
        sizes = (self.d_model, self.d_state, self.d_head, self.n_groups, self.expand, self.window, self.chunk)
        check(min(sizes) > 0, f"ssd's sizes must be positive, found {sizes}")
        inner = self.expand * self.d_model
        check(inner % self.d_head == 0, f"d_head {self.d_head} does not divide the inner width {inner}")
        heads = inner // self.d_head
        check(heads % self.n_groups == 0, f"n_groups {self.n_groups} does not divide the {heads} heads")

    def build(self) -> Ssd:
        return Ssd(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"ssd": cls(8, 4, 4, chunk=4), "ssd-groups": cls(8, 3, 4, n_groups=2, chunk=5, window=2)}


class Ssd(Mixer):
    """Mamba-2's layer: chunked over a chunk of tokens, recurrent for one."""

    writes_to_stream = ("hidden_to_output",)

    def __init__(self, config: SsdConfig) -> None:
        super().__init__()
        self.config = config
        self.chunk_sizes = (config.chunk,)
        self.inner = config.expand * config.d_model
        self.n_heads = self.inner // config.d_head
        self.d_mixed = self.inner + 2 * config.n_groups * config.d_state
        self.input_to_streams = Linear(config.d_model, self.inner + self.d_mixed + self.n_heads, bias=False)
        self.convolution = CausalConvolution(self.d_mixed, config.window)
        self.step_bias = nn.Parameter(torch.empty(self.n_heads))
        decays = torch.arange(1.0, self.n_heads + 1, device="cpu")  # not on meta, see S4d
        self.log_decay = nn.Parameter(torch.empty(self.n_heads).copy_(torch.log(decays)))
        self.skip = nn.Parameter(torch.ones(self.n_heads))
        self.norm = GatedRmsNorm(self.inner)
        self.hidden_to_output = Linear(self.inner, config.d_model, bias=False)
        self.stream, self.steps, self.inputs, self.readers = (Tap() for _ in range(4))
        initialise_steps(None, self.step_bias, 1)

    def init_state(self, batch_size: int) -> State:
        shape = (batch_size, self.n_heads, self.config.d_head, self.config.d_state)
        memory = self.zeros(*shape, dtype=self.dtype_of_sums())
        recent = self.zeros(batch_size, self.config.window - 1, self.d_mixed)
        return SelectiveState(memory, recent, zero_position(batch_size, memory.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, SelectiveState)
        gate, mixed, step = self.input_to_streams(x).split([self.inner, self.d_mixed, self.n_heads], -1)
        mixed, recent = self.convolution(mixed, state.recent, context.lengths, context.owned)
        if x.shape[1] == 1 and context.lengths is None and self._steps_by_kernel(gate, mixed, state.memory):
            given = (gate[:, 0], mixed[:, 0], step[:, 0], state.memory, context.owned)
            found = if_built("SSD of one token", self._step, *given)
            if found is not None:
                y = self.hidden_to_output(self.norm(found[0][:, None]))
                return y, SelectiveState(found[1], recent, stepped(state.count, context.owned))
        heads, write, read, step = self._select(mixed, step)
        if context.lengths is not None:
            # A step of length 0 writes nothing and forgets nothing: padding leaves the state as it is.
            step = step * real_tokens(context.lengths, x)[..., None]
        y, memory = self._mix(heads, step, write, read, state.memory)
        y = self.hidden_to_output(self.norm(y.flatten(2), gate))
        return y, SelectiveState(memory, recent, advance(state.count, x.shape[1], context.lengths))

    def _steps_by_kernel(self, gate: Tensor, mixed: Tensor, memory: Tensor) -> bool:
        # The kernel leaves the norm without its gate.
        heard = is_heard(self.norm) or any(tap.recorded for tap in (self.stream, self.steps, self.inputs, self.readers))
        parts = (gate, self.step_bias, self.log_decay, self.skip)
        return not heard and step_kernels_take(mixed, memory, *parts)

    def _step(
        self, gate: Tensor, mixed: Tensor, step: Tensor, memory: Tensor, owned: Owned | None
    ) -> tuple[Tensor, Tensor]:
        """One token, (B, ...) each: what goes into the norm, and the state after, by one kernel."""
        from regard.kernels.state_step_triton import gated_ssd_step

        c = self.config
        x, write, read = mixed.split([self.inner, c.n_groups * c.d_state, c.n_groups * c.d_state], -1)
        own = (step, self.step_bias, self.log_decay, write, read, memory, self.skip, gate)
        return gated_ssd_step(x, *own, None if owned is None else owned.alive)

    def _mix(self, x: Tensor, step: Tensor, write: Tensor, read: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """y (B, T, H, P) with the skip, and the state after: by kernels where they are, else by the equations."""
        decay = step * -self.log_decay.to(memory.dtype).exp()
        given = (x, step, decay, write, read, self.skip, memory)
        if ssd_kernels_take(*given):
            return ssd(*given)
        driven = x * step.to(x.dtype)[..., None]
        if x.shape[1] == 1:
            y, memory = ssd_recurrent(driven, decay, write, read, memory)
        else:
            y, memory = ssd_chunked(driven, decay, write, read, memory, self.config.chunk)
        return y + self.skip[:, None].to(y.dtype) * x, memory

    def _select(self, mixed: Tensor, step: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """x (B, T, H, P), B and C (B, T, G, N), dt (B, T, H)."""
        c = self.config
        x, write, read = mixed.split([self.inner, c.n_groups * c.d_state, c.n_groups * c.d_state], -1)
        write, read = (m.unflatten(-1, (c.n_groups, c.d_state)) for m in (write, read))
        # Float32 at least, as autocast has it on a GPU: all decays of a text are made of it.
        step = self.steps(F.softplus((step + self.step_bias).to(self.dtype_of_sums())))
        x = self.stream(x.unflatten(-1, (self.n_heads, c.d_head)))
        return x, self.inputs(write), self.readers(read), step
