"""Words as vectors: a row of their own, what they are spelt with, and forms that they share with other words.

    x_t = E[w_t] + max_j relu(conv(C[b_1 .. b_L]))_j + sum_k F[f_k]

A word that was never seen has no row of its own, but its ending and its capital have been seen in others. Bytes are
read by a convolution (Ma and Hovy 2016, 2.1). Forms, such as an ending of three letters or the shape of capitals and
digits, are given by number beside them, as a linear tagger has its features.

While training the row of a word becomes now and then that of unknown words, and that of a form that of unknown forms of
its kind, the oftener the rarer it is: what is rare then teaches what is new.

    p = rare * sqrt(rank / rows)          tokens and forms come by frequency, so that a number is a rank

Glossary
b_1 .. b_L  the bytes of the word in UTF-8, each plus 1, padded with 0; of a long word its beginning and its end
C, conv     vectors of the bytes, and a convolution of width 3 over them
f_1 .. f_K  one form of each kind: 0 for none, k for an unknown one of kind k, above K those that are known
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.layers.position import PositionConfig, check_width

SPELLING_LENGTH = 16  # L
SPELLING_BYTES = 257
SPELLING_WIDTH = 3
KINDS = 12  # K
D_BYTE = 32


def spelling(word: str) -> Int[np.ndarray, "L"]:
    """b_1 .. b_L of a word.

    >>> spelling("ab")[:3].tolist()
    [98, 99, 0]
    """
    data = word.encode("utf-8", "replace")
    if len(data) > SPELLING_LENGTH:
        data = data[: SPELLING_LENGTH // 2] + data[-SPELLING_LENGTH // 2 :]
    found = np.zeros(SPELLING_LENGTH, dtype=np.int32)
    found[: len(data)] = np.frombuffer(data, dtype=np.uint8).astype(np.int32) + 1
    return found


@dataclass(frozen=True)
class SpelledConfig(Config, kind="spelled"):
    """d_byte: width of the vectors of single bytes; 0: a word is its row, however it is spelt.

    position, dropout: as of an embedding of tokens.

    n_forms  rows of the table of forms; 0: there are none.
    rare     the chance that the rarest word or form is read as unknown while training.
    """

    vocab_size: int
    d_model: int
    d_byte: int = D_BYTE
    position: PositionConfig | None = None
    dropout: float = 0.0
    n_forms: int = 0
    rare: float = 0.0

    def __post_init__(self) -> None:
        check(self.vocab_size > 0, f"vocab_size must be positive, found {self.vocab_size}")
        check(self.n_forms == 0 or self.n_forms > KINDS, f"n_forms must be 0 or above {KINDS}, found {self.n_forms}")
        check_width(self.position, self.d_model)
        check(self.d_byte >= 0, f"d_byte must be 0 or more, found {self.d_byte}")
        for name in ("dropout", "rare"):
            check(0 <= getattr(self, name) < 1, f"{name} must lie in [0, 1), found {getattr(self, name)}")

    def build(self) -> Spelled:
        return Spelled(self)


class Spelled(nn.Module):
    """Ids, spellings and forms (B, T, 1 + L + K) to vectors."""

    reads = "words"

    def __init__(self, config: SpelledConfig) -> None:
        super().__init__()
        self.config = config
        self.token_to_vector = nn.Embedding(config.vocab_size, config.d_model)
        if config.d_byte:
            self.byte_to_vector = nn.Embedding(SPELLING_BYTES, config.d_byte)
            padding = SPELLING_WIDTH // 2
            self.bytes_to_features = nn.Conv1d(config.d_byte, config.d_model, SPELLING_WIDTH, padding=padding)
        self.form_to_vector = (
            nn.EmbeddingBag(config.n_forms, config.d_model, mode="sum", padding_idx=0) if config.n_forms else None
        )
        if self.form_to_vector is not None:
            for table in (self.token_to_vector, self.form_to_vector):  # so that the sum has size 1
                nn.init.normal_(table.weight, std=KINDS**-0.5)
        self.position = config.position.build() if config.position else None
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    @property
    def max_length(self) -> int | None:
        return self.position.max_length if self.position is not None else None

    def forward(
        self, words: Int[Tensor, "B T _"], start: Int[Tensor, "B"] | Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        tokens, spelt, forms = words[..., 0], words[..., 1 : 1 + SPELLING_LENGTH], words[..., 1 + SPELLING_LENGTH :]
        x = self.token_to_vector(self._hidden(tokens, torch.zeros_like(tokens), self.config.vocab_size))
        if self.config.d_byte:
            x = x + self._letters(spelt)
        if self.form_to_vector is not None:
            x = x + self._shared(forms, self.form_to_vector)
        if self.position is not None:
            x = x + self.position(start, words.shape[1]).to(x.dtype)
        return self.dropout(x)

    def _letters(self, spelt: Int[Tensor, "B T L"]) -> Float[Tensor, "B T D"]:
        """max_j relu(conv(C[b_1 .. b_L]))_j."""
        letters = self.byte_to_vector(spelt) * (spelt > 0)[..., None]  # after the end of a word there is nothing
        letters = letters.flatten(0, 1).transpose(1, 2)  # (B * T, d_byte, L)
        return self.bytes_to_features(letters).relu().amax(-1).unflatten(0, spelt.shape[:2])

    def _shared(self, forms: Int[Tensor, "B T K"], bag: nn.EmbeddingBag) -> Float[Tensor, "B T D"]:
        """sum_k F[f_k]."""
        unknown = torch.arange(1, 1 + forms.shape[-1], device=forms.device)
        known = forms > KINDS
        read = torch.where(known, self._hidden(forms, unknown.expand_as(forms), self.config.n_forms), forms)
        return bag(read.flatten(0, 1)).unflatten(0, forms.shape[:2])

    def _hidden(self, numbers: Tensor, unknown: Tensor, rows: int) -> Tensor:
        """While training: numbers, of which some are read as unknown."""
        if not (self.training and self.config.rare):
            return numbers
        chance = self.config.rare * (numbers / rows).sqrt()
        return torch.where(torch.rand(numbers.shape, device=numbers.device) < chance, unknown, numbers)
