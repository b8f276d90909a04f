"""Model files of SentencePiece, written without it, and folders of encoder-decoders that read by them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import torch
from tokenizers import processors

from foreign_models import PAIRS, TRANSLATORS, byte_level

UNKNOWN, CONTROL = 2, 3
WORDS = {"source": ["▁the", "▁cat", "▁dog", "▁sat"], "target": ["▁die", "▁Katze", "▁Hund", "▁saß"]}
LETTERS = ["▁", *"abcdefghijklmnopqrstuvwxyzß"]


def field(number: int, wire: int, content: bytes) -> bytes:
    size = varint(len(content)) if wire == 2 else b""
    return varint(number << 3 | wire) + size + content


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def piece_file(pieces: list[tuple[str, float, int]], model_type: int = 1, charsmap: bytes = b"") -> bytes:
    """A model of pieces, each with its score and its kind."""
    parts = [
        field(1, 2, field(1, 2, name.encode()) + field(2, 5, struct.pack("<f", score)) + field(3, 0, varint(kind)))
        for name, score, kind in pieces
    ]
    trainer = field(3, 0, varint(model_type)) + field(43, 0, varint((1 << 64) - 1))
    return b"".join(parts) + field(2, 2, trainer) + field(3, 2, field(2, 2, charsmap))


def side_pieces(side: str) -> list[tuple[str, float, int]]:
    special = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    letters = [(letter, -4.0 - number / 8, 1) for number, letter in enumerate(LETTERS)]
    return [*special, *((word, -1.0, 1) for word in WORDS[side]), *letters]


def translator_folder(folder: Path, name: str) -> Any:
    """A whole folder of an encoder-decoder with random weights: Marian by pieces, the others by a tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = TRANSLATORS[name]().config
    if name == "marian":
        special = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
        tokens = ["</s>", "<unk>", ">>deu<<", *LETTERS, *WORDS["source"], *WORDS["target"], "<pad>"]
        for side in WORDS:
            (folder / f"{side}.spm").write_bytes(piece_file(side_pieces(side)))
        vocabulary = {token: number for number, token in enumerate(tokens)}
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        ids = {"eos_token_id": 0, "pad_token_id": len(tokens) - 1, "decoder_start_token_id": len(tokens) - 1}
        config.decoder_vocab_size = size = len(tokens)
    else:
        special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
        made = byte_level()
        before = "<s> " if name == "bart" else ""
        frame = [("<s>", 0), ("</s>", 1)]
        made.post_processor = processors.TemplateProcessing(single=f"{before}$A </s>", special_tokens=frame)
        made.save(str(folder / "tokenizer.json"))
        size = made.get_vocab_size()
        start = 1 if name == "bart" else 2
        ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "decoder_start_token_id": start}
    (folder / "tokenizer_config.json").write_text(json.dumps(special), encoding="utf-8")
    for key, value in (ids | {"vocab_size": size, "forced_eos_token_id": None}).items():
        setattr(config, key, value)
    model = PAIRS(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    return model
