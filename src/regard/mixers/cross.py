"""Cross-attention: every position asks a memory from outside, such as an encoder's vectors.

    q_t = W_Q x_t,  k_j = W_K m_j,  v_j = W_V m_j                     for each head
    y_t = W_O [ sum_j softmax_j(score(q_t, k_j)) v_j ]                heads side by side   Vaswani et al. 2017, 3.2.3

With one head, additive scores, and neither values nor outputs projected this is the alignment of Bahdanau et al. 2014:

    e_tj = v . tanh(W_a s_(t-1) + U_a h_j),  alpha_tj = softmax_j(e_tj),  c_t = sum_j alpha_tj h_j

Keys and values of the memory are worked out once, when it is first met, and carried in the state: a step costs nothing
for what is in the memory but its look at it. Rows that are copies of one, as those of a beam, look at one memory
together: it is kept once, and their queries stand side by side.

Glossary
m_j, h_j  vectors of the memory, j = 1 .. S
c_t       the context that position t gets; here the tap `summary`
score     dot, scaled_dot, additive, bilinear or cosine, see layers/score.py
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, blank_padding
from regard.core.mixer import Called, Mixer, Shows
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.state import State, advance, zero_position
from regard.core.tap import Tap
from regard.layers.norm import RmsNorm
from regard.layers.score import AdditiveScore, ScoreName, build_score, fused_attention, softmax
from regard.mixers.attention import AttentionConfig
from regard.mixers.memory import MemoryState

Look = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class CrossAttentionConfig(MixerConfig, kind="cross"):
    """d_memory: width of the memory, None for d_model. d_head: K, None for d_model / H. base: of the softmax.

    project_values  values are W_V m_j; otherwise the memory's vectors as they are, with one head.
    project_output  heads go through W_O; otherwise the context comes out as it is, as wide as its values.
    """

    n_heads: int = 1
    d_memory: int | None = None
    d_head: int | None = None
    score: ScoreName = "scaled_dot"
    base: float | None = None
    project_values: bool = True
    project_output: bool = True
    bias: bool = True
    qk_norm: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        heads = self.n_heads
        check(heads > 0, f"n_heads must be positive, found {heads}")
        check(
            self.d_head is not None or self.d_model % heads == 0,
            f"n_heads {heads} does not divide d_model {self.d_model}: choose a divisor, or set d_head",
        )
        check(self.project_values or heads == 1, f"values that are the memory itself have one head, found {heads}")
        check(self.base is None or self.base > 1, f"the softmax base must exceed 1, found {self.base}")
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    @property
    def width(self) -> int:
        """Of the queries and keys of a head."""
        return self.d_head or self.d_model // self.n_heads

    @property
    def memory_width(self) -> int:
        return self.d_memory or self.d_model

    @property
    def context_width(self) -> int:
        """Of all heads' contexts side by side."""
        return self.n_heads * self.width if self.project_values else self.memory_width

    def build(self) -> CrossAttention:
        return CrossAttention(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        decoder = StackConfig(8, (AttentionConfig(8, 2), BlockConfig(8, cls(8, 2))))
        return {
            "cross": cls(8, 2, qk_norm=True),
            "cross-dot": cls(8, 2, score="dot", base=3.0, bias=False),
            "cross-additive": cls(8, 2, score="additive"),
            "cross-bilinear": cls(8, 2, score="bilinear", d_head=6),
            "cross-cosine": cls(8, 2, score="cosine"),
            "cross-bahdanau": cls(8, d_head=5, score="additive", project_values=False, project_output=False),
            "cross-decoder": decoder,
        }


class CrossAttention(Mixer):
    """Looks at the memory of the context, or at the one that its state remembers."""

    reach, permutes, needs_memory, skips_state = 1, True, True, True
    shows: ClassVar[Shows] = {"weights": "alignment", "values": "values"}
    writes_to_stream = ("heads_to_output",)

    def __init__(self, config: CrossAttentionConfig) -> None:
        super().__init__()
        self.config = config
        heads, width = config.n_heads, config.width
        self.input_to_queries = nn.Linear(config.d_model, heads * width, bias=config.bias)
        self.memory_to_keys = nn.Linear(config.memory_width, heads * width, bias=False)
        self.memory_to_values = (
            nn.Linear(config.memory_width, heads * width, bias=config.bias) if config.project_values else nn.Identity()
        )
        self.heads_to_output = (
            nn.Linear(config.context_width, config.d_model, bias=config.bias)
            if config.project_output
            else nn.Identity()
        )
        self.query_norm = RmsNorm(width) if config.qk_norm else nn.Identity()
        self.key_norm = RmsNorm(width) if config.qk_norm else nn.Identity()
        self.score = build_score(config.score, heads, width)
        self.queries, self.keys, self.values = Tap(), Tap(repeats=True), Tap(repeats=True)
        self.scores, self.weights, self.summary = Tap(2), Tap(2), Tap()

    def init_state(self, batch_size: int) -> State:
        c = self.config
        keys = self.zeros(batch_size, 0, c.n_heads, c.width)
        values = self.zeros(batch_size, 0, c.n_heads, c.context_width // c.n_heads)
        zeros = zero_position(batch_size, keys.device)
        return MemoryState(keys, values, zeros, torch.arange(batch_size, device=keys.device), zeros.clone())

    def remember(self, memory: Tensor, lengths: Tensor | None, count: Tensor) -> MemoryState:
        """The state of positions `count` that looks at `memory` (B, S, D), of which `lengths` (B,) are real."""
        heads, memory = self.config.n_heads, blank_padding(memory, lengths)
        keys = self.key_norm(self.memory_to_keys(memory).unflatten(-1, (heads, -1)))
        values = self.memory_to_values(memory).unflatten(-1, (heads, -1))
        padded = hollow = lengths is not None
        if lengths is None:
            lengths = torch.full_like(count, memory.shape[1])
        elif not torch.compiler.is_compiling() and lengths.device.type == "cpu" and len(lengths):
            # Elsewhere a look at the lengths would wait for the device, or be no part of what is compiled.
            least = int(lengths.min())
            padded, hollow = least < memory.shape[1], least == 0
        place = torch.arange(count.shape[0], device=keys.device)
        return MemoryState(keys, values, lengths.to(keys.device), place, count, padded=padded, hollow=hollow)

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        before = self.init_state(x.shape[0]) if state is None else state
        assert isinstance(before, MemoryState)
        y, after = self._looked(x, before, context)
        return y, None if state is None else after.typed_as(before)

    def _looked(self, x: Tensor, state: MemoryState, context: Context) -> tuple[Tensor, MemoryState]:
        """Outputs, and the state after them with keys and values in the number type they were made in."""
        if state.keys.shape[1] == 0:
            if context.memory is None:
                raise ValueError("cross-attention was given no memory to look at")
            state = self.remember(context.memory, context.memory_lengths, state.count)
        q = self.queries(self.query_norm(self.input_to_queries(x).unflatten(-1, (self.config.n_heads, -1))))
        if any(tap.recorded for tap in (self.keys, self.values, self.scores, self.weights)):
            y = self._look_row_by_row(q, state)
        else:
            look = self._readable if isinstance(self.score, AdditiveScore) else self._fast
            k, v = state.keys.to(q.dtype), state.values.to(q.dtype)
            y = state.apart(self._apart(look, state.together(q), k, v, state))
        if state.hollow:
            # Nothing to look at: the context is nothing.
            y = y.masked_fill((state.lengths == 0)[state.owner][:, None, None, None], 0.0)
        after = dataclasses.replace(state, count=advance(state.count, x.shape[1], context.lengths))
        return self.heads_to_output(self.summary(y).flatten(2)), after

    def _look_row_by_row(self, q: Tensor, state: MemoryState) -> Tensor:
        """Every row with a memory of its own, as its taps show it."""
        owner, seen = state.owner, self._seen(state)
        k, v = self.keys(state.keys.to(q.dtype)[owner]), self.values(state.values.to(q.dtype)[owner])
        recorded = self.scores.recorded or self.weights.recorded
        look = self._readable if recorded or isinstance(self.score, AdditiveScore) else self._fast
        return look(q, k, v, None if seen is None else seen[owner])

    def _apart(self, look: Look, q: Tensor, k: Tensor, v: Tensor, state: MemoryState) -> Tensor:
        """What queries (N, T, H, K) see; of slots on a CPU each in its own memory alone: how long others are has no say
        in how its sums round.
        """
        slots = state.hollow and k.device.type == "cpu" and not torch.is_grad_enabled()
        if not slots or torch.compiler.is_compiling():
            return look(q, k, v, self._seen(state))
        own = zip(q.split(1), k.split(1), v.split(1), state.lengths.clamp(min=1).tolist(), strict=True)
        return torch.cat([look(one, keys[:, :n], values[:, :n], None) for one, keys, values, n in own])

    def _seen(self, state: MemoryState) -> Tensor | None:
        """Which slots hold real vectors, (N, 1, 1, S); all of them in a memory without any, whose result is dropped.

        None where all are real.
        """
        if not state.padded:
            return None
        real = torch.arange(state.keys.shape[1], device=state.keys.device) < state.lengths[:, None]
        if state.hollow:
            real = real | (state.lengths == 0)[:, None]
        return real[:, None, None]

    def _readable(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None) -> Tensor:
        """The equation as it stands: scores, softmax, weighted sum; (B, T, H, V)."""
        weights = self.weights(softmax(self.scores(self.score(q, k)), seen, self.config.base))
        weights = F.dropout(weights, self.config.dropout, self.training)
        return torch.einsum("BHTS,BSHK->BTHK", weights, v)

    def _fast(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None) -> Tensor:
        """The same through torch's fused kernel."""
        dropout, base = self.config.dropout if self.training else 0.0, self.config.base
        scale = self.score.scale
        return self.score(q, k, lambda q, k: fused_attention(q, k, v, seen, scale=scale, base=base, dropout=dropout))
