"""How well a query matches a key: dot, scaled dot, additive, bilinear and cosine scores, and the softmax over them.

Glossary
q_i, k_j  query and key of one head, width K
e_ij      score of query i for key j
a_ij      weight: softmax over j of e_ij, in base e or any other (base 3 makes the lecture's fractions exact)

    dot         e = q . k
    scaled_dot  e = q . k / sqrt(K)                 Vaswani et al. 2017, 3.2.1
    additive    e = v . tanh(q + k)                 Bahdanau et al. 2014, A.1.2 (W_q, W_k are the projections)
    bilinear    e = q . (W k)                       Luong et al. 2015, "general"
    cosine      e = tau * q . k / (|q| |k|)         tau learned, one a head

All but the additive one are dot products of transformed queries and keys, so that they share one fast path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

ScoreName = Literal["dot", "scaled_dot", "additive", "bilinear", "cosine"]


Product = Callable[[Tensor, Tensor], Tensor]


class Score(nn.Module):
    """Base: scores are scale * q' . k' for the pair that `fold` returns, unless a subclass writes `forward` itself."""

    scale: float = 1.0

    def fold(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """The pair whose dot product, scaled, is the score; (B, T, H, K) and (B, S, H, K)."""
        return q, k

    def forward(
        self, q: Float[Tensor, "B T H K"], k: Float[Tensor, "B S H K"], product: Product | None = None
    ) -> Tensor:
        """The scores (B, H, T, S), or what a fused `product` makes of the folded pair."""
        q, k = self.fold(q, k)
        if product is not None:
            return product(q, k)
        scores = torch.einsum("BTHK,BSHK->BHTS", q, k)
        return scores if self.scale == 1.0 else scores * self.scale


class DotScore(Score):
    """e = q . k * scale."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale


class BilinearScore(Score):
    """e = q . (W_h k), a matrix for each head, starting near the identity."""

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        noise = torch.randn(n_heads, d_head, d_head) * 0.02
        self.key_to_query = nn.Parameter((torch.eye(d_head) + noise) / math.sqrt(d_head))

    def fold(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return torch.einsum("BTHK,HKJ->BTHJ", q, self.key_to_query), k


class CosineScore(Score):
    """e = tau * cos(q, k)."""

    def __init__(self, n_heads: int, tau: float = 10.0) -> None:
        super().__init__()
        self.tau = nn.Parameter(torch.full((n_heads, 1), tau))

    def fold(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        # torch's own least length of 1e-12 is 0 in float16, where a vector of zeros would be divided by it.
        least = max(1e-12, torch.finfo(q.dtype).tiny)
        return F.normalize(q, dim=-1, eps=least) * self.tau, F.normalize(k, dim=-1, eps=least)


class AdditiveScore(Score):
    """e = v_h . tanh(q + k): a small net for each pair; (B, H, T, S, K) is formed, so that memory is quadratic."""

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.sum_to_score = nn.Parameter(nn.init.normal_(torch.empty(n_heads, d_head), std=d_head**-0.5))

    def forward(self, q: Tensor, k: Tensor, product: Product | None = None) -> Tensor:
        pairs = torch.tanh(q[:, :, None] + k[:, None])  # (B, T, S, H, K)
        return torch.einsum("BTSHK,HK->BHTS", pairs, self.sum_to_score)


def build_score(name: ScoreName, n_heads: int, d_head: int) -> Score:
    match name:
        case "dot":
            return DotScore()
        case "scaled_dot":
            return DotScore(1 / math.sqrt(d_head))
        case "bilinear":
            return BilinearScore(n_heads, d_head)
        case "cosine":
            return CosineScore(n_heads)
        case "additive":
            return AdditiveScore(n_heads, d_head)


def fused_attention(
    q: Float[Tensor, "B T H K"],
    k: Float[Tensor, "B S H K"],
    v: Float[Tensor, "B S H J"],
    mask: Tensor | None,
    *,
    is_causal: bool = False,
    scale: float = 1.0,
    base: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "B T H J"]:
    """sum_j a_ij v_j of folded queries and keys through torch's fused kernel: the weights are never formed.

    mask  (B, H, T, S): False where a query may not look, or numbers to add to the scores in base e.
    """
    y = F.scaled_dot_product_attention(
        q.transpose(1, 2),
        k.transpose(1, 2),
        v.transpose(1, 2),
        attn_mask=mask,
        is_causal=is_causal,
        dropout_p=dropout,
        scale=scale if base is None else scale * math.log(base),
    )
    return y.transpose(1, 2)


def softmax(scores: Tensor, mask: Bool[Tensor, "..."] | None = None, base: float | None = None) -> Tensor:
    """a_ij over the last axis, in base e or `base`: base^x = e^(x ln base). False in the mask gives exactly 0."""
    if base is not None:
        scores = scores * math.log(base)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1)
