"""Backpack: each position is a weighted sum of the sense vectors of the words before it (Hewitt et al. 2023).

    C(x_j)_l                    sense l of word j, from its own embedding alone (layers/senses.py)
    h = Stack(x + positions)    a causal stack that reads the context
    alpha_lij = softmax over j <= i of (Q_l h_i . K_l h_j) / sqrt(D / C)
    o_i = sum_l sum_j alpha_lij C(x_j)_l

What follows, E^T o_i, is linear in the senses, so that scaling one of them changes the logits by a known amount.

Glossary
C  number of senses (k in the paper)    alpha  contextualisation weights, one softmax a sense
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.mixer import Called, Mixer
from regard.core.stack import MixerConfig, StackConfig
from regard.core.state import Chain, State, zero_position
from regard.core.tap import Tap
from regard.layers.position import PositionConfig, check_width
from regard.layers.score import softmax
from regard.layers.senses import SenseVectors
from regard.mixers.attention import AttentionConfig
from regard.mixers.kv_cache import KeyValueState, distances


@dataclass(frozen=True)
class SensesConfig(MixerConfig, kind="senses"):
    """n_senses: C, must divide d_model. context: the causal stack that chooses among senses. d_hidden: of FF."""

    context: MixerConfig
    n_senses: int = 16
    d_hidden: int | None = None
    position: PositionConfig | None = None

    def __post_init__(self) -> None:
        check(self.n_senses > 0, f"n_senses must be positive, found {self.n_senses}")
        ok = self.d_model % self.n_senses == 0
        check(ok, f"n_senses {self.n_senses} does not divide d_model {self.d_model}")
        check(self.context.d_model == self.d_model, "the context stack must have the width of the senses")
        check_width(self.position, self.d_model)

    def build(self) -> Senses:
        return Senses(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        stack = StackConfig(8, (AttentionConfig(8, 2),))
        position = PositionConfig(8, "learned", 64)
        return {"senses": cls(8, stack, 4, 12, position)}


class Senses(Mixer):
    """The context chooses among senses that it cannot change."""

    def __init__(self, config: SensesConfig) -> None:
        super().__init__()
        d_model = config.d_model
        self.n_senses, self.d_key = config.n_senses, d_model // config.n_senses
        self.position_table = config.position.build() if config.position else None
        self.context = config.context.build()
        self.context_norm = nn.LayerNorm(d_model)
        self.senses = SenseVectors(d_model, config.n_senses, config.d_hidden or 4 * d_model)
        self.context_to_match = nn.Linear(d_model, 2 * d_model)
        self.causal, self.state_grows, self.chunk_sizes = self.context.causal, True, self.context.chunk_sizes
        check(self.causal, "the context stack of a Backpack language model must be causal")
        self.sense_vectors, self.sense_weights = Tap(), Tap(2)

    @property
    def max_length(self) -> int | None:
        """Tokens beyond which there are no positions; None without such a limit."""
        return self.position_table.max_length if self.position_table is not None else None

    def init_state(self, batch_size: int) -> State:
        keys = self.zeros(batch_size, 0, self.n_senses, self.d_key)
        values = self.zeros(batch_size, 0, self.n_senses, self.d_key * self.n_senses)
        own = KeyValueState(keys, values, zero_position(batch_size, keys.device))
        return Chain((self.context.init_state(batch_size), own))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert isinstance(state, Chain)
        inner, own = state.parts
        assert isinstance(own, KeyValueState)
        positioned = x if self.position_table is None else x + self.position_table(own.count, x.shape[1]).to(x.dtype)
        h, inner = self.context(positioned, inner, context)
        match = self.context_to_match(self.context_norm(h)).unflatten(-1, (2, self.n_senses, self.d_key))
        q, k = match.unbind(2)  # (B, T, C, D / C)
        senses = self.sense_vectors(self.senses(x))  # (B, T, C, D)
        bounds = own.bounds
        after = own.append(k, senses, context.lengths, bounds)
        keys, values = k, senses
        if bounds.high:
            used = bounds.high + x.shape[1]
            keys, values = (past[:, :used].to(q.dtype) for past in (after.keys, after.values))
        start = own.count[:1] if bounds.level else own.count
        if q.shape[1] == 1 and not self.sense_weights.recorded and (ends := own.ends(bounds)):
            # Each row over its own slots alone, as in attention.py.
            rows = zip(q.split(1), keys.split(1), values.split(1), start.split(1), ends, strict=True)
            y = torch.cat([self._weighed(one, k[:, :n], v[:, :n], at) for one, k, v, at, n in rows])
        else:
            y = self._weighed(q, keys, values, start)
        return y, Chain((inner, after))

    def _weighed(self, q: Tensor, keys: Tensor, values: Tensor, start: Tensor) -> Tensor:
        """The senses (B, S, C, D) of words before queries (B, T, C, K), each as much as it matters; (B, T, D)."""
        scores = torch.einsum("BTCK,BSCK->BCTS", q, keys) / math.sqrt(self.d_key)
        seen = distances(start, q.shape[1], keys.shape[1]) >= 0
        weights = self.sense_weights(softmax(scores, seen[:, None]))  # (B, C, T, S)
        # One product over senses and positions together: (T, C S) times (C S, D).
        return weights.transpose(1, 2).flatten(2) @ values.transpose(1, 2).flatten(1, 2)
