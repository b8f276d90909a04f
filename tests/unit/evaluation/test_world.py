"""Evaluation in the built-in worlds: whoever knows the world has no excess and recalls every fact."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.state import State
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.data.worlds import world as world_named
from regard.data.worlds.base import World
from regard.evaluation.language import evaluate


@dataclass(frozen=True)
class History(State):
    """All tokens read so far (B, count)."""

    tokens: Tensor

    @property
    def position(self) -> Tensor:
        return torch.full((len(self.tokens),), self.tokens.shape[1])


class Oracle:
    """The true distribution of a world as a TokenModel."""

    max_length = None
    head = nn.Identity()

    def __init__(self, world: World, tokenizer: Tokenizer) -> None:
        self.world, self.tokenizer = world, tokenizer
        self.vocab_size = tokenizer.vocab_size

    def init_state(self, batch_size: int) -> History:
        return History(torch.zeros(batch_size, 0, dtype=torch.long))

    def __call__(self, tokens: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, History)
        seen = torch.cat([state.tokens, tokens], 1)
        logits = torch.full((*tokens.shape, self.vocab_size), -math.inf, dtype=torch.float64)
        for b, row in enumerate(seen.tolist()):
            for t in range(tokens.shape[1]):
                self._fill(logits[b, t], row[1 : state.tokens.shape[1] + t + 1])
        return logits, History(seen)

    def _fill(self, logits: Tensor, prefix: list[int]) -> None:
        words = [self.tokenizer.token_text(token) for token in prefix]
        if "<eos>" not in words:
            for word, p in self.world.next_distribution(words).items():
                eos = word == "<eos>"
                logits[self.tokenizer.eos_id if eos else int(self.tokenizer.encode(word)[0])] = math.log(p)


@dataclass(frozen=True)
class Documents:
    ids: np.ndarray
    starts: np.ndarray
    n_bytes: int
    n_chars: int
    unknown: None = None


def prepared(texts: list[str], tokenizer: Tokenizer) -> Documents:
    rows = [[*tokenizer.encode(text).tolist(), tokenizer.eos_id] for text in texts]
    starts = np.cumsum([0, *map(len, rows[:-1])])
    return Documents(np.concatenate(rows).astype(np.uint16), starts, 0, sum(map(len, texts)))


@pytest.mark.parametrize("name", ["stories", "ab"])
def test_who_knows_the_world_has_no_excess_and_recalls_everything(name: str) -> None:
    world = world_named(name)
    texts = world.documents("valid", 4)
    tokenizer = train_tokenizer(world.tokens, world.documents("train", 300), vocab_size=None)
    report = evaluate(Oracle(world, tokenizer), prepared(texts, tokenizer), tokenizer=tokenizer, world=world)
    assert report.tokens == sum(len(world.split(text)) + 1 for text in texts)
    assert report.optimal_loss is not None
    assert report.optimal_loss > 0
    assert report.excess == pytest.approx(0, abs=1e-9)
    assert report.recall is not None
    assert set(report.recall.values()) <= {1.0}
    assert bool(report.recall) == any(world.recall_points(text) for text in texts)
