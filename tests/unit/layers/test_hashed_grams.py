"""N-grams by number: the same ones wherever a text stands in a batch, and each with its name."""

from __future__ import annotations

import numpy as np
import torch

from regard.layers.hashed_grams import Grams, hashed_grams, named_grams
from regard.layers.spelled import spelling

ROWS = 1 << 20


def spelt(*texts: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, T, L) and which words are real; padding holds anything."""
    words = [text.split() for text in texts]
    longest = max(map(len, words))
    found = torch.full((len(texts), longest, 16), 77)
    for row, some in enumerate(words):
        for place, word in enumerate(some):
            found[row, place] = torch.from_numpy(spelling(word).astype(np.int64))
    return found, torch.arange(longest) < torch.tensor([len(some) for some in words])[:, None]


def found_in(grams: tuple[Grams, Grams], row: int) -> set[int]:
    return {int(column) for kind in grams for column in kind.columns[row][kind.there[row]]}


def test_a_text_has_the_n_grams_that_it_has_alone_in_any_batch() -> None:
    together = hashed_grams(*spelt("not bad at all", "Bad", "bad bad bad bad not"), ROWS)
    for row, text in enumerate(("not bad at all", "Bad", "bad bad bad bad not")):
        assert found_in(together, row) == found_in(hashed_grams(*spelt(text), ROWS), 0)
    assert found_in(hashed_grams(*spelt("BAD"), ROWS), 0) == found_in(hashed_grams(*spelt("bad"), ROWS), 0)


def test_a_text_in_32_bits_has_the_n_grams_that_it_has_in_64() -> None:
    words, real = spelt("not bad at all")
    assert found_in(hashed_grams(words.int(), real, ROWS), 0) == found_in(hashed_grams(words, real, ROWS), 0)


def test_every_n_gram_has_a_column_and_its_name() -> None:
    words, _ = spelt("un été")
    names = named_grams(words[0], ROWS)
    around = [f" {word} ".encode() for word in ("un", "été")]
    pieces = {part[i : i + n] for part in around for n in range(2, 6) for i in range(len(part) - n + 1)}
    expected = {"un", "été", "un été"} | {f"[{piece.decode(errors='replace')}]" for piece in pieces}
    assert set(names.values()) == expected
    assert set(names) == found_in(hashed_grams(words, torch.ones(1, 2, dtype=torch.bool), ROWS), 0)


def test_a_word_without_letters_is_none_and_parts_its_neighbours() -> None:
    words, real = spelt("a b")
    apart = torch.cat([words[:, :1], torch.zeros_like(words[:, :1]), words[:, 1:]], 1)
    found = found_in(hashed_grams(apart, torch.ones(1, 3, dtype=torch.bool), ROWS), 0)
    pair = {column for column, name in named_grams(words[0], ROWS).items() if name == "a b"}
    assert found == found_in(hashed_grams(words, real, ROWS), 0) - pair
