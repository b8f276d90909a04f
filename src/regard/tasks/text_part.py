"""TextPart: a held-out part of a text, as documents and as the tokens of all of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from regard.data.shard import TokenShard
from regard.data.tokenizer import Tokenizer
from regard.data.worlds.base import World

LOOKED_AT = 240  # tokens of a document that its opening is sought in
MOST = 30_000  # tokens that are scored in pieces
FEWEST = 2  # pieces that are worth comparing


@dataclass(frozen=True, eq=False)
class TextPart(Sequence[str]):
    """Documents in the tokens of a run. world: that they come from. limit: tokens of it that count; None for all."""

    shard: TokenShard
    tokenizer: Tokenizer
    world: World | None = None
    limit: int | None = None

    def __len__(self) -> int:
        return self.shard.n_documents

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return self.tokenizer.decode(self.shard.document(range(len(self))[index]))

    def opening(self, number: int, tokens: int = LOOKED_AT) -> str:
        """The first tokens of a document."""
        return self.tokenizer.decode(self.shard.document(number)[:tokens])

    def pieces(self, count: int) -> list[TextPart]:
        """The part in some parts of whole documents, each in a world read on its own; one of few documents is cut."""
        found = pieces_of(self.shard, count, may_cut=self.world is None)
        return [TextPart(shard, self.tokenizer, self.world) for shard in found]


def pieces_of(shard: TokenShard, count: int, *, may_cut: bool = True) -> list[TokenShard]:
    """Some parts of whole documents; a text of few documents is cut into equal lengths, or not at all."""
    ends = np.append(shard.starts[1:], shard.tokens)
    whole = int((ends <= MOST).sum())
    if whole >= 2 * FEWEST:
        count = min(count, whole // 2)
        starts = np.append(shard.starts, shard.tokens)
        bounds = [int(starts[whole * number // count]) for number in range(count + 1)]
    else:
        last = min(MOST, shard.tokens) if may_cut else 0
        bounds = [last * number // count for number in range(count + 1)]
    found = []
    for first, last in itertools.pairwise(bounds):
        if last > first:
            within = shard.starts[(shard.starts >= first) & (shard.starts < last)] - first
            found.append(TokenShard(shard.ids[first:last], within if len(within) else np.zeros(1, np.int64), 0, 0))
    return found


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return next((line for line in text.split("\n") if line.strip()), "")
