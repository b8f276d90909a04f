"""One attention head with given matrices, and all that passes through it.

Q = X W_Q,  K = X W_K,  V = X W_V        matrices multiply rows from the right, as on most slides
S = Q K^T,  A = softmax(S),  O = A V
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.tap import record
from regard.layers.score import ScoreName, build_score, softmax
from regard.mixers.attention import AttentionConfig, SelfAttention


@dataclass(frozen=True)
class Looked:
    """What was seen of a head: queries, keys, values and outputs (T, K), scores and weights (T, T)."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    weights: Tensor
    outputs: Tensor


def head(
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    *,
    score: ScoreName = "dot",
    base: float | None = None,
    causal: bool = False,
) -> SelfAttention:
    """A head that is the given matrices; what its output map does to the sums is not looked at."""
    d_model, d_head = w_q.shape
    config = AttentionConfig(d_model, 1, d_head=d_head, causal=causal, score=score, base=base, bias=False)
    mixer = config.build().double()
    weights = {
        "input_to_heads.weight": torch.cat([w_q.T, w_k.T, w_v.T]),
        "heads_to_output.weight": torch.eye(d_model, d_head),
    }
    if score == "cosine":
        weights["score.tau"] = torch.ones(1, 1)
    mixer.load_state_dict(weights)
    return mixer


def look(mixer: SelfAttention, x: Tensor) -> Looked:
    """Every number of a head over the inputs x (T, D)."""
    with record(mixer) as seen:
        mixer(x[None])
    queries, keys, values, outputs = (seen[tap][0][0, :, 0] for tap in ("queries", "keys", "values", "summary"))
    return Looked(queries, keys, values, seen["scores"][0][0, 0], seen["weights"][0][0, 0], outputs)


def ask(
    query: Tensor, keys: Tensor, values: Tensor | None = None, base: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (S,), weights (S,) and output (D,) of one query; the keys are the values where none are given."""
    dot = build_score("dot", 1, len(query))
    scores = dot(query[None, None, None], keys[None, :, None])[0, 0, 0]
    weights = softmax(scores, base=base)
    return scores, weights, weights @ (keys if values is None else values)
