"""Cross-attention: every position asks a memory from outside, such as an encoder's vectors.

    q_t = W_Q x_t,  k_j = W_K m_j,  v_j = W_V m_j                     for each head
    y_t = W_O [ sum_j softmax_j(score(q_t, k_j)) v_j ]                heads side by side   Vaswani et al. 2017, 3.2.3

With one head, additive scores, and neither values nor outputs projected this is the alignment of Bahdanau et al. 2014:

    e_tj = v . tanh(W_a s_(t-1) + U_a h_j),  alpha_tj = softmax_j(e_tj),  c_t = sum_j alpha_tj h_j

Keys and values of the memory are worked out once, when it is first met, and carried in the state: a step costs nothing
for what is in the memory but its look at it.

Glossary
m_j, h_j  vectors of the memory, j = 1 .. S
c_t       the context that position t gets; here the tap `summary`
score     dot, scaled_dot, additive, bilinear or cosine, see layers/score.py
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.mixer import Mixer
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.state import State, advance, zero_position
from regard.core.tap import Tap
from regard.layers.norm import RmsNorm
from regard.layers.score import AdditiveScore, ScoreName, build_score, fused_attention, softmax
from regard.mixers.attention import AttentionConfig


@dataclass(frozen=True)
class MemoryState(State):
    """keys (B, S, H, K), values (B, S, H, V) of the memory, and how many are real; S is 0 before one was met."""

    keys: Tensor
    values: Tensor
    lengths: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


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

    reach, permutes, needs_memory = 1, True, True

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
        self.queries, self.keys, self.values = Tap(), Tap(), Tap()
        self.scores, self.weights, self.summary = Tap(), Tap(), Tap()

    def init_state(self, batch_size: int) -> State:
        c = self.config
        keys = self.zeros(batch_size, 0, c.n_heads, c.width)
        values = self.zeros(batch_size, 0, c.n_heads, c.context_width // c.n_heads)
        zeros = zero_position(batch_size, keys.device)
        return MemoryState(keys, values, zeros, zeros.clone())

    def remember(self, memory: Tensor, lengths: Tensor | None, count: Tensor) -> MemoryState:
        """The state of positions `count` that looks at `memory` (B, S, D), of which `lengths` (B,) are real."""
        heads = self.config.n_heads
        keys = self.key_norm(self.memory_to_keys(memory).unflatten(-1, (heads, -1)))
        values = self.memory_to_values(memory).unflatten(-1, (heads, -1))
        if lengths is None:
            lengths = torch.full_like(count, memory.shape[1])
        return MemoryState(keys, values, lengths.to(keys.device), count)

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, MemoryState)
        if state.keys.shape[1] == 0:
            if context.memory is None:
                raise ValueError("cross-attention was given no memory to look at")
            state = self.remember(context.memory, context.memory_lengths, state.count)
        queries = self.query_norm(self.input_to_queries(x).unflatten(-1, (self.config.n_heads, -1)))
        q, k, v = self.queries(queries), self.keys(state.keys.to(x.dtype)), self.values(state.values.to(x.dtype))
        heard = self.scores.heard or self.weights.heard
        look = self._readable if heard or isinstance(self.score, AdditiveScore) else self._fast
        y = look(q, k, v, self._seen(state))
        # Nothing to look at: the context is nothing.
        y = y.masked_fill((state.lengths == 0)[:, None, None, None], 0.0)
        after = dataclasses.replace(state, count=advance(state.count, x.shape[1], context.lengths))
        return self.heads_to_output(self.summary(y).flatten(2)), after

    def _seen(self, state: MemoryState) -> Tensor:
        """Which slots hold real vectors, (B, 1, 1, S); all of them in a row without any, whose result is dropped."""
        slots = torch.arange(state.keys.shape[1], device=state.keys.device)
        real = slots < state.lengths[:, None]
        return (real | (state.lengths == 0)[:, None])[:, None, None]

    def _readable(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """The equation as it stands: scores, softmax, weighted sum; (B, T, H, V)."""
        weights = self.weights(softmax(self.scores(self.score(q, k)), seen, self.config.base))
        weights = F.dropout(weights, self.config.dropout, self.training)
        return torch.einsum("BHTS,BSHK->BTHK", weights, v)

    def _fast(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """The same through torch's fused kernel."""
        q, k = self.score.fold(q, k)
        dropout = self.config.dropout if self.training else 0.0
        return fused_attention(q, k, v, seen, base=self.config.base, dropout=dropout)

    def flops_per_token(self, length: int) -> float:
        """Forward operations between a position and a memory of `length` vectors."""
        return 2.0 * length * (self.config.n_heads * self.config.width + self.config.context_width)
