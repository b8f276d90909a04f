"""N-grams of texts, against counting them one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.fitting.grams import WORD, Vocabulary, character_grams, pieces_of, word_grams, words_of
from regard.fitting.sparse import SparseRows, side_by_side, summed

TEXTS = ("It's great , it's GREAT !", "", "not great", "a", "naïve Ünïcode 日本語 ok", "\n\t ", "a-b a-b")
some_texts = st.lists(st.text("ab' \n.é", max_size=12), max_size=6)


def plain(words: list[str], order: int) -> Counter[str]:
    return Counter(" ".join(words[i : i + n]) for n in range(1, order + 1) for i in range(len(words) - n + 1))


def as_counters(rows: SparseRows, names: list[str]) -> list[Counter[str]]:
    found = []
    for first, last in zip(rows.starts, rows.starts[1:], strict=False):
        here = zip(rows.columns[first:last].tolist(), rows.values[first:last].tolist(), strict=True)
        found.append(Counter({names[column]: int(value) for column, value in here}))
    return found


@given(some_texts, st.integers(0, 4))
def test_word_n_grams_are_those_of_a_loop(texts: list[str], order: int):
    own = Vocabulary()
    rows = word_grams(words_of(texts), order, own.added, lambda: len(own))
    assert as_counters(rows, own.names) == [plain(WORD.findall(text.lower()), order) for text in texts]


@given(some_texts, st.integers(0, 3))
def test_pairs_with_words_between_are_those_of_a_loop(texts: list[str], skip: int):
    own = Vocabulary()
    rows = word_grams(words_of(texts), 0, own.added, lambda: len(own), skip)
    looped = [
        Counter(
            f"{a} {'.' * ahead} {b}"
            for ahead in range(2, skip + 2)
            for words in [WORD.findall(text.lower())]
            for a, b in zip(words, words[ahead:], strict=False)
        )
        for text in texts
    ]
    assert as_counters(rows, own.names) == looped


@given(some_texts)
def test_character_n_grams_are_those_of_a_loop(texts: list[str]):
    own = Vocabulary()
    rows = character_grams(words_of(texts), 2, 4, own.added, lambda: len(own))
    looped = [Counter(p for word in WORD.findall(text.lower()) for p in pieces_of(word, 2, 4)) for text in texts]
    assert as_counters(rows, own.names) == looped


def test_what_was_not_met_has_no_column():
    own = Vocabulary()
    word_grams(words_of(["a b"]), 2, own.added, lambda: len(own))
    rows = word_grams(words_of(["b a b c"]), 2, own.found, lambda: len(own))
    assert as_counters(rows, own.names) == [Counter({"a": 1, "b": 2, "a b": 1})]


def test_a_vocabulary_goes_through_bytes():
    own = Vocabulary()
    word_grams(words_of(TEXTS), 2, own.added, lambda: len(own))
    character_grams(words_of(TEXTS), 2, 5, own.added, lambda: len(own))
    assert Vocabulary.unpacked(own.packed()).names == own.names
    assert Vocabulary.unpacked(Vocabulary().packed()).names == []
    with pytest.raises(ValueError, match="distinct"):
        Vocabulary.unpacked(np.frombuffer(b"a\na", np.uint8))


def test_sparse_rows_are_their_dense_matrix():
    chance = np.random.default_rng(0)
    rows, columns = np.sort(chance.integers(5, size=40)), chance.integers(7, size=40)
    weights = chance.random(40)
    dense = np.zeros((6, 7))
    np.add.at(dense, (rows, columns), weights)
    made = summed(rows, columns, weights, 6, 7)
    assert np.allclose(made.matrix().to_dense().numpy(), dense)
    assert np.allclose(made.transposed().matrix().to_dense().numpy(), dense.T)
    assert np.allclose(side_by_side([made, made]).matrix().to_dense().numpy(), np.concatenate([dense, dense], 1))
    kept = np.array([True, False, True, True, False, False, True])
    assert np.allclose(made.kept(kept).matrix().to_dense().numpy(), dense[:, kept])


def test_counts_are_those_of_scikit_learn():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    own = Vocabulary()
    rows = word_grams(words_of(TEXTS), 2, own.added, lambda: len(own))
    peer = text.CountVectorizer(ngram_range=(1, 2), token_pattern=WORD.pattern)
    theirs = peer.fit_transform(TEXTS).toarray()
    columns = [peer.vocabulary_[name] for name in own.names]
    assert np.array_equal(rows.matrix().to_dense().numpy(), theirs[:, columns])
