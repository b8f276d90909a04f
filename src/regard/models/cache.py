"""Cache: what was said lately will be said again (Kuhn and De Mori 1990).

    p(w | h) = (c(w) + a / V) / (c(.) + a)
    c(w) = sum over s = 1 .. N of d^(s-1) [w_(t+1-s) = w]

It has nothing to learn and is little alone: it is a part of a mixture (decoding/mixture.py).

Glossary
N, d  window of the cache in tokens, and the decay from one token to the one before it
a     prior: so many tokens, uniformly spread, are in the cache from the beginning
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.model import StatefulModel
from regard.core.state import RecentTokens

# Tokens looked at in one piece: positions x window.
LOOKED_AT = 1 << 22


@dataclass(frozen=True)
class CacheConfig(Config, kind="cache"):
    """window: tokens that are remembered. decay: of a token's weight with every token after it; 1 for none.

    prior  tokens, uniformly spread, that are there from the beginning: with 0, what was not said is impossible.
    """

    vocab_size: int
    window: int = 200
    decay: float = 1.0
    prior: float = 0.0

    def __post_init__(self) -> None:
        check(self.window >= 1, f"window must be at least 1, found {self.window}")
        check(0 < self.decay <= 1, f"decay must lie in (0, 1], found {self.decay}")
        check(0 <= self.prior < math.inf, f"prior must be at least 0, found {self.prior}")

    def build(self) -> Cache:
        return Cache(self)


class Cache(StatefulModel):
    """p(w) from the counts of the last N tokens, which are the state; uniform while there are none."""

    causal, state_grows, permutes = True, False, False
    chunk_sizes: tuple[int, ...] = ()
    max_length = None
    like: Tensor

    def __init__(self, config: CacheConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.reach = config.window
        # Of the number type and on the device of what is given out.
        self.register_buffer("like", torch.zeros(0), persistent=False)

    def init_state(self, batch_size: int) -> RecentTokens:
        return RecentTokens.none(batch_size, self.config.window, self.like.device)

    def forward(
        self, tokens: Int[Tensor, "B T"], state: RecentTokens, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T V"], RecentTokens]:
        """log p of every token after every token."""
        windows, after = self._windows(tokens, state, context)
        p = torch.cat([self._distributions(piece) for piece in windows.split(self._piece(len(tokens)), 1)], 1)
        return p.log().to(self.like.dtype), after

    def log_probs(self, tokens: Int[Tensor, "B T1"], state: RecentTokens) -> tuple[Float[Tensor, "B T"], RecentTokens]:
        """log p of every token but the first, float64, and the state before the last one."""
        windows, after = self._windows(tokens[:, :-1], state, EMPTY)
        size = self._piece(len(tokens))
        pieces = zip(windows.split(size, 1), tokens[:, 1:, None].split(size, 1), strict=True)
        return torch.cat([self._probabilities(piece, wanted) for piece, wanted in pieces], 1).log(), after

    def _windows(self, tokens: Tensor, state: RecentTokens, context: Context) -> tuple[Tensor, RecentTokens]:
        """The last N tokens at every token, (B, T, N), and the state after the real ones."""
        history = torch.cat([state.tokens, tokens], 1)
        return history.unfold(1, self.config.window, 1)[:, 1:], state.after(history, context.lengths)

    def _piece(self, n_rows: int) -> int:
        return max(1, LOOKED_AT // (max(1, n_rows) * self.config.window))

    def _mass(self, windows: Int[Tensor, "B T N"]) -> Float[Tensor, "B T N"]:
        """What each remembered token counts."""
        age = torch.arange(self.config.window - 1, -1, -1, device=windows.device, dtype=torch.float64)
        return torch.where(windows >= 0, self.config.decay**age, 0.0)

    def _distributions(self, windows: Int[Tensor, "B T N"]) -> Float[Tensor, "B T V"]:
        mass = self._mass(windows)
        counts = mass.new_zeros(*windows.shape[:2], self.vocab_size)
        counts.scatter_add_(2, windows.clamp(min=0), mass)
        return self._share(counts, mass.sum(-1, keepdim=True))

    def _probabilities(self, windows: Int[Tensor, "B T N"], wanted: Int[Tensor, "B T 1"]) -> Float[Tensor, "B T"]:
        mass = self._mass(windows)
        return self._share(torch.where(windows == wanted, mass, 0.0).sum(-1), mass.sum(-1))

    def _share(self, count: Tensor, total: Tensor) -> Tensor:
        """(c(w) + a / V) / (c(.) + a), and 1 / V where there is nothing to share."""
        whole = total + self.config.prior
        share = (count + self.config.prior / self.vocab_size) / whole.clamp(min=1e-300)
        return torch.where(whole > 0, share, 1 / self.vocab_size)
