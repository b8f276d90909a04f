"""How probable a prompt is, read a chunk at a time between the steps of an engine."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.model import TokenModel
from regard.decoding.logits import CHUNK, Direct, model_device, tokens_at_once
from regard.decoding.logits_processing import raw_log_probs
from regard.decoding.row_rules import Likeliest


class PromptReading:
    """log p of every token but the first, given all before it, and the likeliest ones at its place.

    log_probs, likeliest  of the tokens that were read so far, in order.
    """

    def __init__(self, model: TokenModel, tokens: Sequence[int], likeliest: int = 0, chunk: int = CHUNK) -> None:
        self.model, self.count = model, likeliest
        self.tokens = torch.tensor([tokens], dtype=torch.long, device=model_device(model))
        self.chunk = tokens_at_once(model, 1, chunk)
        self.state = model.init_state(1)
        self.at = 0
        self.log_probs: list[float] = []
        self.likeliest: list[Likeliest] = []

    @property
    def done(self) -> bool:
        return self.at >= self.tokens.shape[1] - 1

    @torch.no_grad()
    def advance(self) -> None:
        """Read one chunk."""
        end = min(self.at + self.chunk, self.tokens.shape[1] - 1)
        read, following = self.tokens[:, self.at : end], self.tokens[0, self.at + 1 : end + 1]
        before = self.state
        vectors, self.state = self.model(read, before)
        distribution = raw_log_probs(self.model.head(vectors[0]))  # (T, V)
        self.log_probs += self._chosen(distribution, following, read, before).tolist()
        if self.count:
            found = distribution.topk(min(self.count, distribution.shape[1]))
            pairs = zip(found.indices.tolist(), found.values.tolist(), strict=True)
            self.likeliest += [tuple(zip(tokens, told, strict=True)) for tokens, told in pairs]
        self.at = end

    def _chosen(self, distribution: Tensor, following: Tensor, read: Tensor, before: object) -> Tensor:
        if isinstance(self.model, Direct):  # what it says of one token is its word, as in score.py
            return self.model.log_probs(torch.cat([read, following[None, -1:]], 1), before)[0][0]
        return distribution.gather(-1, following[:, None])[:, 0]
