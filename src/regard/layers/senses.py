"""Sense vectors: what a word may contribute, whatever its context (Hewitt et al. 2023, Backpack).

C(x) = FF(E x), C vectors for each word
"""

from __future__ import annotations

from torch import Tensor, nn

from regard.kernels.pointwise import gelu_tanh
from regard.layers.mlp import MlpConfig


class SenseVectors(nn.Module):
    """A residual feed-forward net on the word's own embedding, then a second one with one output for each sense."""

    def __init__(self, d_model: int, n_senses: int, d_hidden: int) -> None:
        super().__init__()
        self.n_senses = n_senses
        self.word_norm = nn.LayerNorm(d_model)
        self.word_mlp = MlpConfig(d_model, d_hidden).build()
        self.sense_norm = nn.LayerNorm(d_model)
        self.word_to_hidden = nn.Linear(d_model, d_hidden)
        self.hidden_to_senses = nn.Linear(d_hidden, n_senses * d_model)
        self.activation = gelu_tanh

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, C, D)."""
        x = x + self.word_mlp(self.word_norm(x))
        senses = self.hidden_to_senses(self.activation(self.word_to_hidden(self.sense_norm(x))))
        return senses.unflatten(-1, (self.n_senses, -1))
