"""Long texts in pieces: what a text is costs no more than its pieces, and a step of training no more than one of them.

    x = sum_p (n_p / n) pool(p)        p: the pieces of a text of n tokens, one after the other, n_p tokens each

A step of training reads one piece of each text, wherever it may begin, which is another one each time; an answer is
given to all of them. A text that is no longer than a piece is read as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Pieces:
    """tokens (P, W ..), lengths (P,): the pieces of all texts. text (P,): the text of each. share (P,): n_p / n."""

    tokens: Tensor
    lengths: Tensor
    text: Tensor
    share: Tensor
    n_texts: int

    def mean(self, vectors: Tensor) -> Tensor:
        """The vectors (B, D) of texts from those of pieces, (P, D)."""
        whole = vectors.new_zeros(self.n_texts, vectors.shape[1])
        return whole.index_add(0, self.text, vectors * self.share[:, None].to(vectors.dtype))


def pieces(tokens: Tensor, lengths: Tensor, size: int) -> Pieces:
    """The texts (B, T ..) in pieces of `size`; a text of no tokens is one empty piece."""
    lengths = lengths.to(tokens.device)
    n = (tokens.shape[1] + size - 1) // size  # a division of ONNX cuts towards 0, also below it
    width: Any = torch.sym_min(tokens.shape[1], size)  # also of a graph, whose texts may be shorter
    after = tokens.new_zeros(tokens.shape[0], n * width - tokens.shape[1], *tokens.shape[2:])
    cut = torch.cat([tokens, after], 1).unflatten(1, (n, width)).flatten(0, 1)
    first = torch.arange(n, device=lengths.device) * size
    each = (lengths[:, None] - first).clamp(0, size)  # (B, n)
    share = each / lengths[:, None].clamp(min=1)
    is_empty = (lengths == 0)[:, None] & (first == 0)
    there = (each > 0) | is_empty
    text = torch.arange(len(lengths), device=lengths.device)[:, None].expand_as(each)
    if torch.compiler.is_exporting():  # sizes within a graph are not told by what is read: all, of which some are empty
        return Pieces(cut, each.flatten(), text.flatten(), (share + is_empty).flatten(), len(lengths))
    return Pieces(cut[there.flatten()], each[there], text[there], (share + is_empty)[there], len(lengths))


def one_piece(tokens: Tensor, lengths: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """A piece of each text, its beginning drawn from all that are possible; tokens (B, W ..) and lengths (B,)."""
    lengths = lengths.to(tokens.device)
    room = (lengths - size).clamp(min=0)
    first = (torch.rand(len(lengths), device=lengths.device) * (room + 1)).long().minimum(room)
    place = first[:, None] + torch.arange(size, device=lengths.device)  # (B, W)
    rows = torch.arange(len(lengths), device=lengths.device)[:, None]
    return tokens[rows, place], lengths.clamp(max=size)
