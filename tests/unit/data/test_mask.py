"""What is hidden: 15% of the tokens, by the 80/10/10 rule, always the same for the same sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batch import NOT_COUNTED
from regard.data.mask import MaskedRows, Masking, WordDropout, cut
from regard.data.order import uniform
from regard.data.ragged import ragged
from regard.data.rows import LabelRows, PairRows, Shuffled
from regard.data.shard import make_shard
from regard.data.tokenizer import Tokenizer, train_tokenizer

WORDS = " ".join(f"word{i}" for i in range(200))
MASKING = Masking(train_tokenizer("words", [WORDS]))
EOS = MASKING.tokenizer.eos_id
TEXTS = ragged(np.arange(1, 41) for _ in range(64))
LABELS = LabelRows(TEXTS, np.zeros(64, dtype=np.int64))


def rows(n: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, EOS, (n, length))


def hide(
    tokens: np.ndarray, first: int = 0, seed: int = 5, masking: Masking = MASKING
) -> tuple[np.ndarray, np.ndarray]:
    n, length = tokens.shape
    return masking.hide(tokens, np.full(n, length), np.arange(first, first + n), seed)


def test_shares_are_fifteen_percent_of_which_eighty_ten_and_ten():
    tokens = rows(2000, 100)
    read, targets = hide(tokens)
    chosen = targets != NOT_COUNTED
    assert (chosen.sum(1) == 15).all()
    assert (targets[chosen] == tokens[chosen]).all()
    assert (read[~chosen] == tokens[~chosen]).all()
    n = chosen.sum()
    masked = (read == MASKING.mask_id)[chosen].mean()
    kept = (read == tokens)[chosen].mean()
    deviation = (0.25 / n) ** 0.5
    assert masked == pytest.approx(0.8, abs=4 * deviation)
    # A random token is the same one now and then.
    assert kept == pytest.approx(0.1 + 0.1 / EOS, abs=4 * deviation)
    by_place = chosen.mean(0)
    assert by_place.std() < 2 * (0.15 * 0.85 / 2000) ** 0.5
    others = read[chosen & (read != tokens) & (read != MASKING.mask_id)]
    assert np.bincount(others, minlength=EOS).shape == (EOS,)
    assert np.bincount(others, minlength=EOS).max() < 4 * len(others) / EOS


@given(st.integers(0, 2**63 - 1), st.integers(0, 10**9), st.integers(1, 40))
def test_a_sample_is_hidden_alike_whatever_stands_beside_it(seed: int, number: int, length: int):
    tokens = rows(3, length)
    together = hide(tokens, number, seed)
    for row in range(3):
        alone = hide(tokens[row : row + 1], number + row, seed)
        assert (alone[0][0] == together[0][row]).all()
        assert (alone[1][0] == together[1][row]).all()


def test_another_number_or_seed_hides_otherwise():
    tokens = rows(1, 100)
    first = hide(tokens)[1]
    assert (hide(tokens, first=1)[1] != first).any()
    assert (hide(tokens, seed=6)[1] != first).any()


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(0, 1000))
def test_only_real_text_is_hidden_and_some_of_every_row(lengths: list[int], number: int):
    tokens = rows(len(lengths), 14, seed=number)
    sizes = np.array(lengths) + 2
    tokens[:, 0] = EOS
    tokens[np.arange(14) >= (sizes - 1)[:, None]] = EOS
    read, targets = MASKING.hide(tokens, sizes, np.arange(number, number + len(lengths)), 0)
    chosen = targets != NOT_COUNTED
    assert chosen.any(1).all()
    assert not chosen[tokens == EOS].any()
    assert (read[tokens == EOS] == EOS).all()


@pytest.mark.parametrize("kind", ["bpe", "unigram", "chars", "words", "bytes"])
def test_whole_words_are_hidden_whole(kind: str):
    text = "unbelievable stories, told 1984 times: the extraordinary cat's überlange tail.\n" * 40
    tokenizer: Tokenizer = train_tokenizer(kind, [text[:60]])
    masking = Masking(tokenizer, whole_words=True)
    ids = tokenizer.encode(text)[:600]
    words = by_hand(tokenizer, ids)
    assert kind == "words" or len(set(words)) < len(ids)
    shares = []
    for number in range(50):
        _, targets = masking.hide(ids[None], np.array([len(ids)]), np.array([number]), 3)
        chosen = targets[0] != NOT_COUNTED
        shares.append(chosen.mean())
        for word in set(words):
            assert len(set(chosen[words == word])) == 1, tokenizer.decode(ids[words == word])
    assert np.mean(shares) == pytest.approx(0.15, abs=0.01)


def by_hand(tokenizer: Tokenizer, ids: np.ndarray) -> np.ndarray:
    """The number of the word of each token, by the characters at its borders in the text."""
    if tokenizer.kind == "words":
        return np.arange(len(ids))
    words, before = [], " "
    for token in ids.tolist():
        piece = tokenizer.piece(token, None).decode("latin-1")
        same = (is_letter(before) and is_letter(piece[0])) or (before.isdigit() and piece[0].isdigit())
        words.append((words[-1] if words else 0) + (not same))
        before = piece[-1]
    return np.array(words)


def is_letter(character: str) -> bool:
    return character.isalpha() or ord(character) >= 128


def test_uniform_numbers_are_uniform_and_apart():
    found = uniform(list(range(400)), 250)
    assert found.shape == (400, 250)
    assert len(np.unique(found)) == found.size
    assert np.histogram(found, 20, (0, 1))[0].std() / 5000 < 0.03
    assert abs(np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]) < 0.01


def test_passages_hold_every_token_of_a_text():
    documents = [f"word{i} word{i + 1} word{i + 2}" for i in range(30)]
    shard = make_shard(documents, MASKING.tokenizer)
    single = cut(shard, 128, "documents")
    assert [MASKING.tokenizer.decode(single[i]) for i in range(30)] == documents
    assert (single[0][[0, -1]] == EOS).all()
    windows = cut(shard, 12, "windows")
    seen = np.zeros(shard.tokens, dtype=bool)
    for start, length in zip(windows.starts, windows.lengths, strict=True):
        assert length == 10
        seen[start : start + length] = True
    assert seen.all()


def test_windows_begin_elsewhere_in_each_epoch_and_are_a_pure_function_of_the_step():
    shard = make_shard([WORDS], MASKING.tokenizer)
    passages = cut(shard, 22, "windows", rolls=True)
    sampler = Shuffled(MaskedRows(passages, MASKING, 1), 1)
    first, again = sampler.batch(70, 4), Shuffled(MaskedRows(passages, MASKING, 1), 1).batch(70, 4)
    assert (first.tokens == again.tokens).all()
    assert (first.targets == again.targets).all()
    starts = {int(passages.padded(np.array([0]), np.array([epoch]), 1)[0, 1]) for epoch in range(8)}
    assert len(starts) > 4


def test_the_share_rises_over_the_ramp_and_is_a_pure_function_of_the_step():
    sampler = WordDropout(Shuffled(LABELS, 0), 0.4, 100, 0, 5)
    shares = [float((sampler.batch(step, 32).tokens == 0).float().mean()) for step in (0, 50, 100, 900)]
    assert shares[0] == 0
    assert shares[1:] == pytest.approx([0.2, 0.4, 0.4], abs=0.04)
    assert torch.equal(sampler.batch(70, 32).tokens, sampler.batch(70, 32).tokens)
    assert not torch.equal(sampler.batch(70, 32).tokens == 0, sampler.batch(71, 32).tokens == 0)


def test_targets_and_the_start_of_what_is_written_stay():
    rows = PairRows(TEXTS, TEXTS, 99)
    plain, dropped = Shuffled(rows, 0).batch(3, 8), WordDropout(Shuffled(rows, 0), 0.9, 0, 50, 5).batch(3, 8)
    assert torch.equal(plain.targets, dropped.targets)
    assert torch.equal(plain.source, dropped.source)  # pyright: ignore[reportArgumentType]
    assert (dropped.tokens[:, 0] == 99).all()
    assert (dropped.tokens[:, 1:] == 50).float().mean() > 0.8


def test_a_hidden_word_has_no_spelling():
    spelt = ragged(np.tile(np.arange(1, 6), (10, 1)) for _ in range(8))
    rows = LabelRows(spelt, np.zeros(8, dtype=np.int64))
    tokens = WordDropout(Shuffled(rows, 0), 0.5, 0, 7, 1).batch(0, 8).tokens
    hidden = tokens[..., 0] == 7
    assert hidden.any()
    assert (tokens[hidden][:, 1:] == 0).all()
    assert (tokens[~hidden] == torch.arange(1, 6)).all()
