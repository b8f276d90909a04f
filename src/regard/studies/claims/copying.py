"""Copying: random symbols are read and written again, so that all of them must get from the encoder to the decoder."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.core.config import Config
from regard.core.context import EMPTY, Context
from regard.core.data_spec import DataSpec
from regard.core.inputs import SourceTokens
from regard.core.registry import entry

SYMBOLS = 16


class Copier(nn.Module):
    """A model of pairs that writes what it reads: (B, T) symbols, each told from those before it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.model: Any = config.build()

    @property
    def head(self) -> nn.Module:
        return self.model.head

    def forward(self, symbols: Tensor, state: None = None, context: Context = EMPTY) -> tuple[Tensor, None]:
        start = torch.full_like(symbols[:, :1], SYMBOLS)
        return self.model(SourceTokens(symbols, torch.cat([start, symbols[:, :-1]], 1)), state, context)


def copying(name: str, **settings: Any) -> Config:
    """A registered model of pairs for the symbols and the one that begins."""
    return entry(name).config(DataSpec(vocab_size=SYMBOLS + 1), "tiny", dropout=0.0, **settings)


def symbol_rows(rows: int, length: int, seed: int, device: str) -> tuple[Tensor, Tensor]:
    """Random symbols, and the same symbols to be written."""
    symbols = torch.randint(SYMBOLS, (rows, length), generator=torch.Generator().manual_seed(seed)).to(device)
    return symbols, symbols
