"""Model files of SentencePiece: ids are those of the package for any text, and a damaged file is told in a line."""

from __future__ import annotations

import io
import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

import regard
from foreign_models import TEXT, tiny_folder
from piece_models import piece_file, side_pieces
from regard.data.tokenizer import from_dict
from regard.errors import CheckpointError, DataError
from regard.interop.sentence_piece import piece_tokenizer, read_pieces

HOSTILE = [
    *("", " ", "  a   b ", "<s>", "</s>", "<unk>", "<0x41>", "a\tb\nc", "▁", "▁▁a", "a▁", "ｱｶﾞ ㎏", "🙂🙂", "漢字", "<"),
    *("e\u0301 a\u0308\u0301", "\u200b\u200d", "<usr>x", "x<usr> y", "\x01", "ﬁ" * 3, "½ Ⅷ", "\u1e9b\u0323", "\ufeff"),
    *("a\u00a0b", " <s>the", "日本語ABC", "ا لله ﷺ", "각", "\u0344\u0385", "x" * 300),
]
LINES = [*TEXT, "Ⅷ ﬁne ½ café naïve", "hello <s> world", "the quick brown fox jumps over the lazy dog 0123456789"] * 20
SETTINGS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram", "vocab_size": 90},
    "unigram-bytes": {"model_type": "unigram", "vocab_size": 340, "byte_fallback": True},
    "bpe": {"model_type": "bpe", "vocab_size": 110, "normalization_rule_name": "nfkc_cf"},
    "bpe-bytes": {
        "model_type": "bpe",
        "vocab_size": 360,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
    },
}


def trie(offset: int) -> bytes:
    """A table of one key, "a", whose unit leads on to unit 97 ^ offset: to a leaf, or around."""
    units = [0] * 128
    units[97] = offset << 10 | 1 << 8 | 97
    units[98] = 0x7FFFFFFF
    return struct.pack("<129I", 512, *units) + b"\0"


@pytest.mark.parametrize("name", SETTINGS)
def test_ids_are_those_of_sentencepiece_for_hostile_text(name: str, tmp_path: Path) -> None:
    package = pytest.importorskip("sentencepiece")
    written = io.BytesIO()
    common: dict[str, Any] = {
        "user_defined_symbols": ["<usr>"],
        "pad_id": 3,
        "minloglevel": 2,
        "hard_vocab_limit": False,
    }
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=written, character_coverage=0.98, **common, **SETTINGS[name]
    )
    (tmp_path / "my.model").write_bytes(written.getvalue())
    theirs = package.SentencePieceProcessor(model_proto=written.getvalue())
    pieces = read_pieces(tmp_path / "my.model")
    ours = from_dict(piece_tokenizer(pieces, pieces.special, len(pieces.names)).to_dict())
    assert (ours.start_id, ours.eos_id, ours.unknown_id) == (theirs.bos_id(), theirs.eos_id(), theirs.unk_id())
    draw = random.Random(0)
    signs = "abcde the<s>▁ \té\u0301ﬁ漢🙂<0x41>/½"
    drawn = ["".join(draw.choice(signs) for _ in range(draw.randrange(30))) for _ in range(200)]
    for text in HOSTILE + drawn:
        ids = theirs.encode(text)
        assert ours.encode(text).tolist() == ids, repr(text)
        assert len(ours.unknown_sizes(text)) == ids.count(theirs.unk_id())
        if theirs.unk_id() not in ids and "▁" not in text:
            assert ours.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize("offset", [3, 1 << 20])
def test_a_table_of_characters_that_leads_out_is_told_when_it_is_met(offset: int, tmp_path: Path) -> None:
    (tmp_path / "my.model").write_bytes(piece_file(side_pieces("source"), charsmap=trie(offset)))
    pieces = read_pieces(tmp_path / "my.model")
    tokenizer = piece_tokenizer(pieces, pieces.special, len(pieces.names))
    assert len(tokenizer.encode("the dog"))
    with pytest.raises(DataError, match="table of characters"):
        tokenizer.encode("the cat")


def test_a_folder_with_such_a_file_needs_no_other_program(tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    tiny_folder(folder, "llama", "byte_level")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"bos_token_id": 1, "eos_token_id": 2}), encoding="utf-8")
    (folder / "tokenizer.model").write_bytes(piece_file(side_pieces("source")))
    run = regard.load(folder, device="cpu")
    names = [run.tokenizer.token_text(int(token)) for token in run.tokenizer.encode("the cat </s>")]
    assert [name.strip() for name in names] == ["the", "cat", "", "<unk>", "s", "<unk>"]
    assert run.tokenizer.token_text(run.tokenizer.start_id) == "<s>"
    assert run.generate("the cat", max_tokens=3, temperature=0.0).startswith("the cat")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "0 pieces"),
        (b"\xff" * 40, "64 bits"),
        (piece_file(side_pieces("source"))[:-3], "in the middle"),
        (piece_file([("a", 0.0, 1)] * 2), "2 pieces, of which 1 differ"),
        (piece_file(side_pieces("source"), model_type=4), "models of words or characters"),
        (piece_file(side_pieces("source"), charsmap=b"\xff" * 12), "trie does not fit"),
        (b"\x0a\x02\x08\x05", "field 1 holds no bytes"),  # a piece whose name is a number
        (b"\x0a\x06\x0a\x01a\x1a\x01x", "field 3 is no whole number"),
        (b"\x0a\x03\x0a\x01a\x1a\x02\x10\x07", "field 2 holds no bytes"),  # a table of characters that is a number
        (b"\x08\x03", "in the place of a message"),
    ],
)
def test_a_damaged_file_is_told_in_a_line(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "my.model").write_bytes(content)
    with pytest.raises(CheckpointError, match=told) as caught:
        read_pieces(tmp_path / "my.model")
    assert "\n" not in str(caught.value)
