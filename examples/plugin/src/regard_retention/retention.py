"""Retention: what a token writes fades by the same share at every token after it (Sun et al. 2023, section 2.1).

    y_t = sum_(s<=t) gamma_h^(t-s) (q_t . k_s) v_s                 parallel: attention with a decay for its softmax
    S_t = gamma_h S_(t-1) + k_t^T v_t,        y_t = q_t S_t        recurrent: (K, K) numbers a head at any length
    chunked: the parallel form inside chunks of tokens, the recurrence between them

Each head has a decay of its own, gamma_h = 1 - 2^-(e + h), h = 0, 1, ...: the first forgets fastest. The paper turns
queries and keys by their positions, and normalises and gates what comes out; both are left out here.

Glossary
q, k, v  (B, H, T, K) queries, keys and values, W x; q is divided by sqrt(K)
gamma_h  the share of the memory that a token leaves to the next; log_decay: its logarithm, (H,)
S        (B, H, K, K) the memory
e        `exponent` of the first head
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, real_tokens
from regard.core.mixer import Called, Mixer, Shows
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, zero_position
from regard.core.tap import Tap


@dataclass(frozen=True)
class RetentionState(State):
    """memory (B, H, K, K): S. count (B,): tokens read."""

    memory: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class RetentionConfig(MixerConfig, kind="retention"):
    """n_heads: H. exponent: e. chunk: tokens that are compared with each other at once."""

    n_heads: int = 4
    exponent: float = 5.0
    chunk: int = 64

    def __post_init__(self) -> None:
        sizes = (self.d_model, self.n_heads, self.chunk)
        check(min(sizes) > 0, f"retention's sizes must be positive, found {sizes}")
        check(self.d_model % self.n_heads == 0, f"n_heads {self.n_heads} does not divide d_model {self.d_model}")
        check(self.exponent > 0, f"retention's exponent must be positive, found {self.exponent}")

    def build(self) -> Retention:
        return Retention(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"retention": cls(8, 2, chunk=4), "retention-fast": cls(6, 3, exponent=0.5, chunk=3)}


class Retention(Mixer):
    """Chunked over a chunk of tokens, recurrent for one."""

    shows: ClassVar[Shows] = {"memory": "state"}
    writes_to_stream = ("values_to_output",)

    def __init__(self, config: RetentionConfig) -> None:
        super().__init__()
        self.config = config
        self.chunk_sizes = (config.chunk,)
        self.d_head = config.d_model // config.n_heads
        self.input_to_heads = nn.Linear(config.d_model, 3 * config.d_model, bias=False)
        self.values_to_output = nn.Linear(config.d_model, config.d_model, bias=False)
        self.memory = Tap(None)  # one token passes at a time

    def init_state(self, batch_size: int) -> State:
        # What adds up over a whole text is kept in float32 at least.
        memory = self.zeros(batch_size, self.config.n_heads, self.d_head, self.d_head, dtype=self.dtype_of_sums())
        return RetentionState(memory, zero_position(batch_size, memory.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, RetentionState)
        if self.memory.recorded:
            # Chunks never form the memory after each token. Who listens gets the readable form, step by step.
            return super().forward(x, state, context)
        memory = state.memory
        q, k, v = self._heads(x, memory.dtype)
        decay, real = self.log_decay(memory), real_tokens(context.lengths, x)
        outputs = []
        for start in range(0, x.shape[1], self.config.chunk):
            part = slice(start, start + self.config.chunk)
            y, memory = retain(q[:, :, part], k[:, :, part], v[:, :, part], decay, memory, real[:, part].sum(1))
            outputs.append(y)
        y = self._joined(torch.cat(outputs, 2), x)
        return y, RetentionState(memory, advance(state.count, x.shape[1], context.lengths))

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, RetentionState)
        q, k, v = (part[:, :, 0] for part in self._heads(x[:, None], state.memory.dtype))  # (B, H, K)
        share = self.log_decay(state.memory).exp()[:, None, None]
        memory = self.memory(share * state.memory + k[..., None] * v[..., None, :])
        y = torch.einsum("BHK,BHKV->BHV", q, memory)
        return self._joined(y[:, :, None], x[:, None])[:, 0], RetentionState(memory, state.count + 1)

    def log_decay(self, like: Tensor) -> Tensor:
        """log gamma of each head, (H,), where and as exact as `like` is."""
        heads = torch.arange(self.config.n_heads, device=like.device, dtype=like.dtype)
        return torch.log1p(-torch.exp2(-(self.config.exponent + heads)))

    def _heads(self, x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v of x (B, T, D), each (B, H, T, K)."""
        parts = self.input_to_heads(x).to(dtype).unflatten(-1, (3, self.config.n_heads, self.d_head))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        return q * self.d_head**-0.5, k, v

    def _joined(self, y: Tensor, x: Tensor) -> Tensor:
        """What the heads read, (B, H, T, K), as vectors of the stream."""
        return self.values_to_output(y.transpose(1, 2).flatten(2).to(x.dtype))


def retain(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, memory: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """A chunk of n tokens at once, i and j from 1 to n.

    y_i = gamma^i q_i S + sum_(j<=i) gamma^(i-j) (q_i . k_j) v_j        S' = gamma^n S + sum_j gamma^(n-j) k_j^T v_j

    lengths (B,) is n of each row. Padding after it was read as zeros, so that its keys are zeros and write nothing.
    """
    place = torch.arange(q.shape[2], device=q.device)
    age = place[:, None] - place
    within = _share(log_decay, age).masked_fill(age < 0, 0)  # (H, T, S)
    y = torch.einsum("BHTK,BHSK,HTS,BHSV->BHTV", q, k, within, v)
    y = y + torch.einsum("BHTK,BHKV,HT->BHTV", q, memory, _share(log_decay, place + 1))
    left = (lengths[:, None] - 1 - place).clamp(min=0)  # (B, S), tokens of the row that follow each
    written = torch.einsum("BHSK,HBS,BHSV->BHKV", k, _share(log_decay, left), v)
    kept = _share(log_decay, lengths).T[..., None, None]  # (B, H, 1, 1)
    return y, kept * memory + written


def _share(log_decay: Tensor, tokens: Tensor) -> Tensor:
    """gamma_h^tokens, (H, ...)."""
    heads = log_decay.reshape(-1, *[1] * tokens.dim())
    return (heads * tokens.clamp(min=0)).exp()
