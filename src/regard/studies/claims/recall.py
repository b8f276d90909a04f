"""Recall tasks for bare models: something said early is asked for later, and nothing else counts.

letters     B A B B A ?        -> B      the first of `distance` + 1 letters
stories     the words of a story that repeat what it told before, by how far back that was

Copying: random symbols are read and written again, so that all of them must get from the encoder to the decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.config import Config
from regard.core.context import EMPTY, Context
from regard.core.data_spec import DataSpec
from regard.core.inputs import SourceTokens
from regard.core.model import logits_of
from regard.core.registry import entry
from regard.data.batch import NOT_COUNTED
from regard.data.corpus import prepare
from regard.studies.claims.fitting import Batches

LETTERS, QUESTION = 2, 2
# Last distance of each bucket of stories.
EDGES = (16, 32, 64, 128)
SYMBOLS = 16


def letter_rows(rows: int, distance: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random letters and a question; only the first letter, asked for at the end, counts."""
    letters = torch.randint(LETTERS, (rows, distance), generator=torch.Generator().manual_seed(seed))
    inputs = torch.cat([letters, torch.full((rows, 1), QUESTION)], 1)
    targets = torch.full_like(inputs, NOT_COUNTED)
    targets[:, -1] = letters[:, 0]
    return inputs, targets


@dataclass(frozen=True, eq=False)
class StoryRows:
    """Stories with one fact each, as rows (N, T) of tokens, and the distance of each word to be recalled, else 0."""

    tokens: Tensor
    distances: Tensor
    vocab_size: int

    @property
    def inputs(self) -> Tensor:
        return self.tokens[:, :-1]

    @property
    def targets(self) -> Tensor:
        return self.tokens[:, 1:].masked_fill(self.distances[:, 1:] == 0, NOT_COUNTED)

    def batches(self, size: int, device: str) -> Batches:
        """Random rows for each step."""

        def batch(step: int) -> tuple[Tensor, Tensor]:
            rows = torch.randint(len(self.tokens), (size,), generator=torch.Generator().manual_seed(step))
            length = int((self.distances[rows] > 0).nonzero()[:, 1].max()) + 1
            return self.inputs[rows, :length].to(device), self.targets[rows, :length].to(device)

        return batch


def story_rows(events: int, counts: tuple[int, int], seed: int) -> tuple[StoryRows, StoryRows]:
    """So many stories to train on, and so many held out."""
    corpus = prepare(f"world:stories?facts=1&events={events}&train={counts[0]}&valid={counts[1]}", seed=seed)
    world, tokenizer = corpus.world, corpus.tokenizer
    assert world is not None
    return tuple(
        _rows([(tokenizer.encode(text).tolist(), world.recall_points(text)) for text in texts], tokenizer)
        for texts in (world.documents("train"), world.documents("valid"))
    )  # pyright: ignore[reportReturnType]  # two of them


def _rows(stories: Sequence[tuple[list[int], list[tuple[int, int]]]], tokenizer: Any) -> StoryRows:
    longest = max(len(ids) for ids, _ in stories)
    tokens = torch.full((len(stories), longest + 1), tokenizer.eos_id)
    distances = torch.zeros_like(tokens)
    for row, (ids, points) in enumerate(stories):
        tokens[row, 1 : len(ids) + 1] = torch.tensor(ids)
        for index, distance in points:
            distances[row, index + 1] = distance
    return StoryRows(tokens, distances, tokenizer.vocab_size)


@torch.no_grad()
def recall_by_distance(model: nn.Module, held: StoryRows, device: str) -> dict[str, float]:
    """The share of recalled words that are right, in buckets that end at EDGES."""
    right = logits_of(model, held.inputs.to(device)).argmax(-1).cpu() == held.targets
    distances = held.distances[:, 1:]
    found = {}
    for low, high in zip((0, *EDGES), EDGES, strict=False):
        bucket = (distances > low) & (distances <= high)
        if bucket.any():
            found[str(high)] = float(right[bucket].float().mean())
    return found


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
