"""Tokenizers: round trips, streaming, files, and what they refuse."""

from __future__ import annotations

import json
import math
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.tokenizer import TOKENIZERS, Tokenizer, from_dict, load, save, streamer, train_tokenizer
from regard.data.tokenizer.subword import BYTE_CHARACTERS, pieces
from regard.errors import CheckpointError, DataError, UsageError

STORY = "Once there was a fox . The fox was quick , and it was called Über-Fuchs ; 12 hens knew it .\n" * 20
DATA = Path(__file__).parents[4] / "shared" / "data"
LOSSLESS = ("bytes", "bpe", "unigram")
TRICKY = [
    "",
    "\x00",
    "<eos>",
    "a<eos>b <unk> <0xE2>",
    "e\u0301 vs é",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "שלום עולם",
    "a\x0bb\x0cc\x1cd\u2028e\u0085f",
    "\r\n \n\t\n\n  x   y ",
    "\ufeffbom",
    "\ud7ff\ue000\uffff\U0010ffff",
    "it's we'll THEY'RE don't",
]


@cache
def tokenizer(kind: str) -> Tokenizer:
    text = "3 -1 4 1 5 9 2 6" if kind == "integers" else STORY
    return train_tokenizer(kind, [text], vocab_size=300 if kind in ("bpe", "unigram") else None)


@cache
def spaces_in_runs(kind: str) -> Tokenizer:
    """A tokenizer with tokens of several spaces and ends of lines, which a wrong cut would tear apart."""
    tokens = train_tokenizer(kind, ["aaaa   aa\n\n\naaa    aaaaa\n\n\n\naa\n\n  a" * 100], vocab_size=290)
    assert {"\n\n", "  ", "aa"} <= {tokens.token_text(i) for i in range(tokens.vocab_size)}
    return tokens


def streamed(tokens: Tokenizer, ids: list[int]) -> list[str]:
    stream = streamer(tokens)
    return [stream.push(i) for i in ids] + [stream.finish()]


@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=st.text())
@settings(max_examples=150, deadline=None)
def test_any_valid_string_round_trips(kind, text):
    tokens = tokenizer(kind)
    ids = tokens.encode(text)
    assert tokens.decode(ids) == text
    assert ids.dtype == np.int64
    assert tokens.eos_id not in ids
    assert "".join(streamed(tokens, ids.tolist())) == text


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("text", TRICKY)
def test_tricky_strings_round_trip(kind, text):
    tokens = tokenizer(kind)
    assert tokens.decode(tokens.encode(text)) == text


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_streaming_any_ids_equals_decoding_them(kind, data):
    tokens = tokenizer(kind)
    ids = data.draw(st.lists(st.integers(0, tokens.vocab_size - 1), max_size=30))
    assert "".join(streamed(tokens, ids)) == tokens.decode(ids)
    assert tokens.decode(np.array(ids, dtype=np.int64)) == tokens.decode(ids)


@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_stream_emits_whole_characters_only(kind):
    tokens = tokenizer(kind)
    text = "né 👩‍👧 naïve 東京 fox"
    emitted = streamed(tokens, tokens.encode(text).tolist())
    assert "".join(emitted) == text
    assert "\ufffd" not in "".join(emitted)
    assert emitted[-1] == ""


def test_a_stream_that_ends_inside_a_character_says_so_at_the_end_only():
    tokens = tokenizer("bytes")
    assert streamed(tokens, list("é".encode()[:1])) == ["", "\ufffd"]


@pytest.mark.parametrize("kind", ["bytes", "chars", "words", "bpe", "unigram"])
def test_lone_surrogates_are_refused(kind):
    for text in ("ab\ud800cd", "\udfff"):
        with pytest.raises(DataError, match="lone surrogate"):
            tokenizer(kind).encode(text)
        if kind != "bytes":
            with pytest.raises(DataError, match="character 2 of the text is a lone surrogate"):
                train_tokenizer(kind, ["ab\ud800cd"])


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_eos_is_last_adds_no_text_and_cannot_be_spelled(kind):
    tokens = tokenizer(kind)
    assert tokens.eos_id == tokens.vocab_size - 1
    assert tokens.token_text(tokens.eos_id) == "<eos>"
    ids = tokens.encode("1 2" if kind == "integers" else "fox The")
    assert tokens.decode([tokens.eos_id, *ids, tokens.eos_id]) == tokens.decode(ids)
    if kind != "integers":
        assert tokens.eos_id not in tokens.encode("fox <eos> fox<eos>")


def test_the_word_eos_of_a_text_is_a_word_of_its_own():
    tokens = train_tokenizer("words", ["a <eos> b"])
    ids = tokens.encode("a <eos> b")
    assert tokens.eos_id not in ids
    assert tokens.decode(ids) == "a <eos> b"


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_file_round_trips(kind, tmp_path):
    tokens = tokenizer(kind)
    save(tokens, tmp_path / "tokenizer.json")
    again = load(tmp_path / "tokenizer.json")
    text = "5 -1" if kind == "integers" else STORY + "Grüße 東京\n"
    assert type(again) is type(tokens)
    assert again.hash == tokens.hash
    assert again.to_dict() == tokens.to_dict()
    assert np.array_equal(again.encode(text), tokens.encode(text))
    assert json.loads((tmp_path / "tokenizer.json").read_bytes())["kind"] == kind


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_training_twice_gives_the_same_tokenizer(kind):
    text = "1 2 3" if kind == "integers" else STORY
    size = 290 if kind in ("bpe", "unigram") else None
    hashes = {train_tokenizer(kind, [text], vocab_size=size).hash for _ in range(3)}
    assert len(hashes) == 1


def test_the_hash_sees_two_swapped_tokens():
    one, other = train_tokenizer("words", ["a a b"]), train_tokenizer("words", ["b b a"])
    assert one.vocab_size == other.vocab_size
    assert one.hash != other.hash


def test_a_text_has_as_many_tokens_as_characters_and_one_for_all_others():
    tokens = train_tokenizer("chars", ["abc"])
    assert tokens.vocab_size == 3 + 2
    assert tokens.encode("aéc€😀b").tolist() == [0, 3, 2, 3, 3, 1]
    assert tokens.token_text(1) == "b"
    assert (tokens.unknown_id, tokens.token_text(3)) == (3, "<unk>")
    assert tokens.decode([0, 3, 1]) == "a\ufffdb"
    # Which of the other 1,112,061 characters it is.
    assert tokens.unknown_sizes("aéc€😀b").tolist() == [2, 3, 4]
    assert tokens.spelling(np.array([2, 4])) == pytest.approx([math.log(0x110000 - 0x800 - 3)] * 2)
    assert tokens.decode(tokens.encode("cab")) == "cab"


def test_characters_of_a_run_from_before_are_still_spelled_as_bytes():
    tokens = from_dict({"format": "regard-tokenizer", "version": 1, "kind": "chars", "characters": "abc"})
    assert tokens.vocab_size == 3 + 256 + 1
    assert tokens.encode("aéc€😀b").tolist() == [0, 3 + 0xC3, 3 + 0xA9, 2, *(3 + b for b in "€😀".encode()), 1]
    assert tokens.token_text(3 + 0xC3) == "<0xC3>"
    assert tokens.decode(tokens.encode("Grüße 東京")) == "Grüße 東京"
    assert (tokens.unknown_id, tokens.unknown_sizes("é").tolist()) == (None, [])
    assert tokens.to_dict()["characters"] == "abc"
    assert "others" not in tokens.to_dict()


def test_characters_can_be_limited_to_the_most_frequent():
    tokens = train_tokenizer("chars", ["aaabbc"], vocab_size=4)
    assert tokens.vocab_size == 4
    assert tokens.encode("abc").tolist() == [0, 1, 2]
    assert tokens.unknown_id == 2


def test_words_split_at_spaces_and_line_ends():
    tokens = train_tokenizer("words", ["the cat . the dog .\nthe end"])
    ids = tokens.encode("the dog\nthe bird .")
    assert [tokens.token_text(i) for i in ids] == ["the", "dog", "\n", "the", "<unk>", "."]
    assert tokens.decode(ids) == "the dog\nthe <unk> ."
    assert tokens.token_text(2) == "the"


@given(
    lines=st.lists(st.lists(st.text(st.characters(exclude_characters=" \n\r", codec="utf-8"), min_size=1)), min_size=1)
)
@settings(max_examples=100, deadline=None)
def test_words_round_trip_in_both_styles_of_lines(lines):
    plain = "\n".join(" ".join(words) for words in lines)
    spaced = "".join(" " + "".join(word + " " for word in words) + "\n" for words in lines)
    assert train_tokenizer("words", [plain]).decode(train_tokenizer("words", [plain]).encode(plain)) == plain
    assert train_tokenizer("words", [spaced]).decode(train_tokenizer("words", [spaced]).encode(spaced)) == spaced


def test_words_keep_the_most_frequent_up_to_the_size():
    tokens = train_tokenizer("words", ["c c c b b a"], vocab_size=4)
    assert tokens.vocab_size == 4
    assert tokens.decode(tokens.encode("a b c")) == "<unk> b c"


def test_the_end_of_a_line_is_a_word_where_the_text_has_lines():
    one, many = train_tokenizer("words", ["a b"]), train_tokenizer("words", ["a\nb"])
    assert (one.vocab_size, many.vocab_size) == (4, 5)
    assert one.decode(one.encode("a\nb")) == "a <unk> b"
    assert many.decode(many.encode("a\nb")) == "a\nb"


def test_integers_name_what_they_cannot_hold():
    tokens = train_tokenizer("integers", ["0 7\n3"])
    assert tokens.vocab_size == 9
    assert tokens.decode(tokens.encode(" 5\n 007 ")) == "5 7"
    with pytest.raises(DataError, match=r"8 is outside 0 \.\. 7"):
        tokens.encode("1 8")
    for wrong in ("1 2.5", "1 x", "1 1_0", "1 -+3", "1 " + "9" * 5000):
        with pytest.raises(DataError, match=r"word 1 of the text|outside"):
            tokens.encode(wrong)
    with pytest.raises(DataError, match="too many"):
        train_tokenizer("integers", ["0 9999999999"])
    assert train_tokenizer("integers", ["1"], vocab_size=11).vocab_size == 11


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_are_shorter_than_bytes_and_fit_the_size(kind):
    tokens = tokenizer(kind)
    assert tokens.vocab_size <= 300
    assert len(tokens.encode(STORY)) < 0.8 * len(STORY.encode())


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=st.text(alphabet="aé1_' \n\t.\u2028\x1c東", max_size=60))
@settings(max_examples=150, deadline=None)
def test_a_long_text_is_cut_where_its_tokens_do_not_show_it(kind, text):
    tokens = spaces_in_runs(kind)
    parts = list(pieces(text, 3))
    assert "".join(parts) == text
    assert np.array_equal(np.concatenate([tokens.encode(part) for part in parts]), tokens.encode(text))


def test_long_texts_really_are_cut():
    assert max(map(len, pieces(STORY, 50))) < 100
    assert max(map(len, pieces("東京。\n" * 100, 50))) < 100


def test_byte_characters_agree_with_the_library():
    from tokenizers import pre_tokenizers

    assert sorted(BYTE_CHARACTERS) == sorted(pre_tokenizers.ByteLevel.alphabet())
    for text in ("é", "\x00\x7f \n", "ÿþ"):
        ((written, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
        assert written == "".join(BYTE_CHARACTERS[byte] for byte in text.encode())


def test_names_and_sizes_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="did you mean 'words'"):
        train_tokenizer("word", ["a"])
    for kind, size in (("bytes", 300), ("chars", 2), ("words", 3), ("bpe", 256), ("unigram", 10), ("integers", 1)):
        with pytest.raises(UsageError, match=f"vocab_size {size}"):
            train_tokenizer(kind, ["1 2"], vocab_size=size)


def test_an_id_of_another_vocabulary_is_refused():
    for wrong in (-1, 257):
        with pytest.raises(DataError, match="not in 0"):
            tokenizer("bytes").decode([wrong])
        with pytest.raises(DataError, match="not in 0"):
            streamer(tokenizer("bytes")).push(wrong)


HEAD = '{"format": "regard-tokenizer", "version": 1, "kind": '
MALFORMED = [
    b"",
    b"\x80\x04\x95pickle",
    b"[" * 100_000,
    b"[]",
    b'"words"',
    b'{"kind": "bytes"}',
    b'{"format": "regard-tokenizer", "kind": "bytes"}',
    b'{"format": "regard-tokenizer", "version": 2, "kind": "bytes"}',
    (HEAD + '"wordz"}').encode(),
    (HEAD + "[1]}").encode(),
    (HEAD + '"chars"}').encode(),
    (HEAD + '"chars", "characters": "ba"}').encode(),
    (HEAD + '"chars", "characters": "\\ud800"}').encode(),
    (HEAD + '"chars", "characters": [1, 2]}').encode(),
    (HEAD + '"words", "words": ["a", "a"], "spaced_lines": false}').encode(),
    (HEAD + '"words", "words": ["a b"], "spaced_lines": false}').encode(),
    (HEAD + '"words", "words": [1], "spaced_lines": false}').encode(),
    (HEAD + '"words", "words": ["\\ud800"], "spaced_lines": false}').encode(),
    (HEAD + '"words", "words": ["a"], "spaced_lines": 1}').encode(),
    (HEAD + '"integers", "low": 5, "high": 1}').encode(),
    (HEAD + '"integers", "low": 0, "high": 1e9}').encode(),
    (HEAD + '"integers", "low": 0, "high": 100000000000}').encode(),
    (HEAD + '"bpe", "model": {}}').encode(),
    (HEAD + '"bpe", "model": [1]}').encode(),
    (HEAD + '"bpe", "model": {"model": {"type": "BPE"}, "pre_tokenizer": null}}').encode(),
]


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_file_is_refused_by_name(content, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(CheckpointError, match=r"none\.json"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_subword_file_that_would_change_texts_is_refused(kind):
    good = tokenizer(kind).to_dict()

    def changed(**changes):
        return json.loads(json.dumps(good)) | {"model": good["model"] | changes}

    special = {"id": 0, "content": "a", "special": True, "single_word": False, "lstrip": False, "rstrip": False}
    for changes in (
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"added_tokens": [special | {"normalized": False}]},
        {"model": good["model"]["model"] | {"type": "WordLevel"}},
        {"model": good["model"]["model"] | {"vocab": {} if kind == "bpe" else []}},
        {"model": good["model"]["model"] | {"vocab": 3}},
    ):
        with pytest.raises(CheckpointError, match="damaged"):
            from_dict(changed(**changes))
    assert from_dict(changed()).hash == tokenizer(kind).hash


def test_characters_and_words_are_encoded_quickly():
    """Bounds ten times above what was measured, so that only a change of kind (a loop over characters) is seen."""
    text = STORY * 500
    for kind, limit in (("chars", 0.1), ("words", 0.5)):
        tokens = tokenizer(kind)
        started = time.process_time()
        tokens.encode(text)
        per_megabyte = (time.process_time() - started) / (len(text) / 1e6)
        assert per_megabyte < limit, f"{kind}: {per_megabyte:.3f} s for a million characters"


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the data sets are not beside the repository")
def test_wikitext_2_has_the_counts_that_papers_quote():
    from regard.data.source import read_documents

    (train,) = read_documents(str(DATA / "wikitext2" / "train.txt.gz"))
    (valid,) = read_documents(str(DATA / "wikitext2" / "valid.txt.gz"))
    tokens = train_tokenizer("words", [train])
    # 33,278 types count the end of a line and <unk>; <eos> between documents is one more.
    assert tokens.vocab_size == 33_278 + 1
    assert len(tokens.encode(train)) == 2_088_628
    assert len(tokens.encode(valid)) == 217_646
    assert tokens.decode(tokens.encode(valid)) == valid
