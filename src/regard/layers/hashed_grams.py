"""The n-grams of words as they are spelt, each by a number below a fixed one: no list of them is kept.

    words       of one and of two neighbours, and pairs with 1 .. `skip` words between that are not looked at
    characters  2 .. 5 neighbouring bytes of a word with a blank on each side, so that " un" is a beginning

    h(b_1 .. b_n) = (h(b_1 .. b_(n-1)) A + b_n) mod P, and the column is h(.) mod R / 2

N-grams of one column share what is learnt of it, which costs little where columns are many (Weinberger et al. 2009). A
text is the set of its n-grams: how often one occurs does not count. Small and capital letters of ASCII are the same.

Glossary
b_1 .. b_n  bytes plus 1, as of layers/spelled.py; 0 after the end of a word
A, P        a multiplier and a prime, so small that no product overflows 64 bits
R           columns in all, a half of them for each kind
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

SHORTEST, LONGEST = 2, 5
MULTIPLIER, PRIME = 1_000_003, (1 << 31) - 1
BLANK = ord(" ") + 1
FIRST_CAPITAL, LAST_CAPITAL, TO_SMALL = ord("A") + 1, ord("Z") + 1, ord("a") - ord("A")
NONE = -1  # where there is no n-gram


class Grams(NamedTuple):
    """columns, there (B, N): the n-grams of texts; one is not there where it is padding, or was already."""

    columns: Int[Tensor, "B N"]
    there: Bool[Tensor, "B N"]


def hashed_grams(
    spelt: Int[Tensor, "B T L"], real: Bool[Tensor, "B T"], rows: int, skip: int = 0
) -> tuple[Grams, Grams]:
    """Those of words and those of characters. real: words that are no padding; one without letters counts as none."""
    words, characters = map(_once, _both(spelt, real, rows // 2, skip))
    return words, Grams(characters.columns + rows // 2, characters.there)


def named_grams(spelt: Int[Tensor, "T L"], rows: int, skip: int = 0) -> dict[int, str]:
    """The columns of one text, each with the name of the n-gram that stands in it; of characters in brackets."""
    real = torch.ones(1, len(spelt), dtype=torch.bool, device=spelt.device)
    words, characters = (part[part != NONE].tolist() for part in _both(spelt[None], real, rows // 2, skip))
    texts = [bytes(byte - 1 for byte in row if byte).lower() for row in spelt.tolist() if row[0]]
    pairs = [b" ".join(pair) for pair in itertools.pairwise(texts)]
    for ahead in range(2, skip + 2):
        gap = b"." * ahead
        pairs += [b"%b %b %b" % (first, gap, last) for first, last in zip(texts, texts[ahead:], strict=False)]
    # The order of `_character_grams`: by place within the word for each length.
    pieces = [
        b"[%b]" % spaced[first : first + n]
        for n in range(SHORTEST, LONGEST + 1)
        for spaced in (b" %b " % text for text in texts)
        for first in range(len(spaced) - n + 1)
    ]
    columns = words + [rows // 2 + column for column in characters]
    names = (name.decode("utf-8", "replace") for name in (*texts, *pairs, *pieces))
    return dict(zip(columns, names, strict=True))


def _both(spelt: Tensor, real: Tensor, columns: int, skip: int) -> tuple[Tensor, Tensor]:
    """Of words and of characters: the column of each n-gram, (B, N), and NONE where there is none."""
    spelt = spelt.long()  # a text by itself may be read in 32 bits, in which products would overflow
    is_capital = (spelt >= FIRST_CAPITAL) & (spelt <= LAST_CAPITAL)
    spelt = torch.where(is_capital, spelt + TO_SMALL, spelt)
    real = real & (spelt[..., 0] > 0)
    found = (_word_grams(spelt, real, skip), _character_grams(spelt, real))
    words, characters = (torch.where(part == NONE, NONE, part % columns) for part in found)
    return words, characters


def _word_grams(spelt: Tensor, real: Tensor, skip: int) -> Tensor:
    """h of single words, of neighbours and of pairs with words between, (B, N)."""
    h = torch.zeros_like(spelt[..., 0])
    for byte in spelt.unbind(-1):
        h = _next(h, byte)
    # A word of no letters, as the end of a text, has no neighbours: only those side by side are pairs.
    found = [torch.where(real, h, NONE)]
    for ahead in range(1, skip + 2):
        before = h if ahead == 1 else (h + ahead) % PRIME  # a pair with words between is no pair of neighbours
        pairs, both = _next(before[:, :-ahead], h[:, ahead:]), real[:, :-ahead] & real[:, ahead:]
        found.append(torch.where(both, pairs, NONE))
    return torch.cat(found, 1)


def _character_grams(spelt: Tensor, real: Tensor) -> Tensor:
    """h of all n-grams of bytes, shorter ones first, (B, N)."""
    sizes = (spelt > 0).sum(-1, keepdim=True)
    around = F.pad(spelt, (1, 1)).scatter(-1, torch.cat([torch.zeros_like(sizes), sizes + 1], -1), BLANK)
    h, found = around, []
    for n in range(2, LONGEST + 1):
        h = _next(h[..., :-1], around[..., n - 1 :])
        first = torch.arange(h.shape[-1], device=h.device)
        inside = real[..., None] & (first + n <= sizes + 2)
        found.append(torch.where(inside, h, NONE).flatten(1))
    return torch.cat(found[SHORTEST - 2 :], 1)


def _next(h: Tensor, byte: Tensor) -> Tensor:
    return (h * MULTIPLIER + byte) % PRIME


def _once(columns: Tensor) -> Grams:
    """Every column of a text once."""
    columns = columns.sort(1).values
    new = torch.ones_like(columns, dtype=torch.bool)
    new[:, 1:] = columns[:, 1:] != columns[:, :-1]
    return Grams(columns.clamp(min=0), new & (columns != NONE))
