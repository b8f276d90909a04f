"""Vectors of the tokens of many texts, batch by batch, as `run.encode` and `run.embed` ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.context import Context
from regard.core.device import device_of
from regard.core.model import TokenEncoder
from regard.data.ragged import Ragged, in_batches
from regard.errors import UsageError

Reader = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Some of the texts. rows: which. vectors: of their tokens, those after the end of a text being of no meaning."""

    rows: np.ndarray
    vectors: Float[Tensor, "B T D"]
    lengths: Int[Tensor, "B"]


def reader_of(model: nn.Module) -> Reader:
    """What reads tokens and lengths and gives vectors, of a model that has them."""
    if not isinstance(model, TokenEncoder):
        raise UsageError(f"a model of the kind {type(model).__name__} answers and has no vectors of tokens to give")
    encoder: TokenEncoder = model
    return lambda tokens, lengths: encoder.encode(tokens, Context(lengths=lengths))


@torch.no_grad()
def encoded(model: nn.Module, read: Reader, ids: Ragged, before: int = 0, after: int = 0) -> Iterator[Encoded]:
    """The vectors of sequences of ids without those of their frame.

    before, after  tokens of the frame on each side of every sequence.
    """
    device = device_of(model)
    for rows in in_batches(ids.sizes.tolist()):
        tokens, lengths = (part.to(device) for part in ids.padded(rows, 0))
        yield Encoded(rows, read(tokens, lengths)[:, before:], lengths - before - after)


def picked(found: Encoded, places: list[np.ndarray]) -> Encoded:
    """Of each text the vectors at some places, such as those of its words."""
    width = max((len(some) for some in places), default=0)
    index = np.zeros((len(places), width), np.int64)
    for row, some in enumerate(places):
        index[row, : len(some)] = some
    device: Any = found.vectors.device
    at = torch.from_numpy(index).to(device)
    vectors = found.vectors[torch.arange(len(places), device=device)[:, None], at]
    return Encoded(found.rows, vectors, torch.tensor([len(some) for some in places], device=device))
