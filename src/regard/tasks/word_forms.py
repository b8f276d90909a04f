"""The forms of words: what a word shares with others, so that one that was never met is no stranger.

    l=paris  h=Xx      small letters, shape          p1 .. p4=pari  f1 .. f4=aris    beginnings and endings
    n=9                how rare the word is: its place by frequency, in powers of two; 0 for one without a row
    small=4            of a word with a capital: the same of its small letters

They are the features by which the crf sees a word alone (fitting/word_features.py). Those that training met once are
not told apart, as words are not: a network would know them by heart. A row of numbers has a place for each kind:

    0 no such form     1 .. K an unknown one of this kind     from K + 1 on the known ones, by frequency
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from regard.fitting.word_features import FULL, clipped, of_word
from regard.layers.spelled import KINDS

# In the order of their places in a row.
NAMES = ("l", "h", "p1", "p2", "p3", "p4", "f1", "f2", "f3", "f4", "n", "small")
MET_TWICE, MOST = 2, 1 << 15
MOST_WORDS = 1 << 18  # that are looked at: of more the rest is rare, and its common forms are those of others
PLACE = {name: place for place, name in enumerate(NAMES)}
assert len(NAMES) == KINDS
# From a word to its token, 0 for one without.
TokenOf = Callable[[str], int]


def forms_of(word: str, token_of: TokenOf) -> dict[int, str]:
    """The names of a word's forms, by their places.

    >>> sorted(forms_of("I", lambda word: 5).values())
    ['f1=i', 'h=X', 'l=i', 'n=3', 'p1=i', 'small=3']
    """
    word = clipped(word)
    names = [*of_word(word, FULL), f"n={token_of(word).bit_length()}"]
    low = word.lower()
    if low != word:
        names.append(f"small={token_of(low).bit_length()}")
    return {PLACE[kind]: name for name in names if (kind := name.partition("=")[0]) in PLACE}


def forms_met_twice(words: Counter[str], token_of: TokenOf) -> tuple[str, ...]:
    """The forms of counted words that were met at least twice, the most frequent first; at most MOST of them."""
    counts = Counter[str]()
    for word, count in words.most_common(MOST_WORDS):
        for name in forms_of(word, token_of).values():
            counts[name] += count
    often = (name for name, count in counts.items() if count >= MET_TWICE)
    return tuple(sorted(often, key=lambda name: (-counts[name], name))[:MOST])


def numbered(forms: Sequence[str]) -> dict[str, int]:
    """The number of each known form."""
    return {name: KINDS + 1 + number for number, name in enumerate(forms)}


def row_of(word: str, token_of: TokenOf, number_of: Mapping[str, int]) -> np.ndarray:
    """The numbers of a word's forms, (K,)."""
    row = np.zeros(KINDS, np.int32)
    for place, name in forms_of(word, token_of).items():
        row[place] = number_of.get(name, 1 + place)
    return row


def counted(sentences: Iterable[Sequence[str]]) -> Counter[str]:
    """How often each word is met."""
    counts = Counter[str]()
    for words in sentences:
        counts.update(words)
    return counts
