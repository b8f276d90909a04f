"""Tokenizers of other programs: the ids and the texts of the library, for any text."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers

from foreign_models import NAMED
from regard.data.tokenizer import from_dict, streamer
from regard.data.tokenizer.foreign import ForeignTokenizer
from regard.errors import CheckpointError, DataError

FRAMES = {"byte_level": ("<s>", "</s>"), "sentence_piece": ("<s>", "</s>"), "word_piece": ("[CLS]", "[SEP]")}
HOSTILE = "  <s> \x00\x1b[31m\ufeff ﷺ 👩‍👩‍👧 e\u0301 \u202e \r\n\t don't do not . , ' </s>"


@cache
def pair(kind: str) -> tuple[LibraryTokenizer, ForeignTokenizer]:
    library = NAMED[kind][0]()
    start, end = FRAMES[kind]
    size = library.get_vocab_size() + 7
    return library, ForeignTokenizer(json.loads(library.to_str()), {"start": start, "end": end}, size)


@pytest.mark.parametrize("kind", NAMED)
@given(text=st.text(max_size=40))
@example(text=HOSTILE)
@example(text="")
@example(text=" the the  cat ")
def test_ids_and_text_are_those_of_the_library(kind: str, text: str) -> None:
    library, ours = pair(kind)
    ids = library.encode(text, add_special_tokens=False).ids
    assert ours.encode(text).tolist() == ids
    assert ours.decode(ids) == library.decode(ids, skip_special_tokens=True)
    pieces = streamer(ours)
    assert "".join(pieces.push(token) for token in ids) + pieces.finish() == ours.decode(ids)


@pytest.mark.parametrize("kind", NAMED)
def test_special_tokens_are_what_is_said(kind: str) -> None:
    library, ours = pair(kind)
    start, end = FRAMES[kind]
    assert (ours.start_id, ours.eos_id) == (library.token_to_id(start), library.token_to_id(end))
    assert ours.token_text(ours.start_id) == start
    assert ours.decode([ours.start_id, ours.eos_id]) == ""
    assert ours.mask_id is None
    assert ours.vocab_size == library.get_vocab_size() + 7
    assert ours.decode([ours.vocab_size - 1]) == ""  # a row of the model that is no token
    with pytest.raises(DataError):
        ours.decode([ours.vocab_size])


@pytest.mark.parametrize("kind", NAMED)
def test_what_is_saved_is_read(kind: str) -> None:
    _, ours = pair(kind)
    again = from_dict(json.loads(json.dumps(ours.to_dict())))
    assert again.hash == ours.hash
    assert again.encode(HOSTILE).tolist() == ours.encode(HOSTILE).tolist()


def test_text_is_neither_cut_nor_filled_up() -> None:
    library = NAMED["word_piece"][0]()
    library.enable_truncation(4)
    library.enable_padding(length=64)
    ours = ForeignTokenizer(json.loads(library.to_str()), {"start": "[CLS]", "end": "[SEP]"}, 100)
    assert len(ours.encode("the cat sat on the mat")) == 6


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"special": {"start": "<nowhere>", "end": "</s>"}}, "there is no token '<nowhere>'"),
        ({"special": {"start": "<s>"}}, "no token is said for end"),
        ({"special": {"begin": "<s>"}}, "'begin' is none of"),
        ({"vocab_size": 3}, "there is a token of id"),
        ({"model": {"model": {"type": "BPE"}}}, "is damaged"),
        ({"model": []}, "must be an object"),
    ],
)
def test_what_is_no_tokenizer_is_refused_in_a_line(changes: dict[str, Any], told: str) -> None:
    content = pair("byte_level")[1].to_dict() | changes
    with pytest.raises(CheckpointError, match=told) as caught:
        from_dict(content, "tokenizer.json")
    assert "\n" not in str(caught.value)


def test_a_decoder_that_looks_ahead_is_refused() -> None:
    content = pair("byte_level")[1].to_dict()
    content["model"] = content["model"] | {"decoder": {"type": "BPEDecoder", "suffix": "</w>"}}
    with pytest.raises(CheckpointError, match="the decoder BPEDecoder is not known"):
        from_dict(content)


def test_unknown_words_are_told_by_the_bytes_they_stand_for() -> None:
    made = LibraryTokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "</s>": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(["[UNK]", "</s>"])
    special = {"start": "</s>", "end": "</s>"}
    model = json.loads(made.to_str())
    for said in (special, special | {"unknown": "[UNK]"}):  # by who imports it, or by the model alone
        ours = ForeignTokenizer(model, said, 3)
        assert ours.encode("Größe the [UNK] zebra").tolist() == [0, 1, 0, 0]
        assert ours.unknown_sizes("Größe the [UNK] zebra").tolist() == [len("Größe".encode()), 0, len(" zebra")]
    # GPT-2 calls its end of a text unknown, and spells everything by bytes.
    assert ForeignTokenizer(model, special | {"unknown": "</s>"}, 3).unknown_id is None
