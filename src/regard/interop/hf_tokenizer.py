"""The tokenizer of a Hugging Face folder as it is, with its special tokens said one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard.data.tokenizer.foreign import ForeignTokenizer
from regard.errors import LONGEST_TOLD, CheckpointError, RegardError
from regard.storage.manifest import read_json

FILE, SETTINGS, NAMED = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
OLDER = ("vocab.json", "vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
LARGEST = 1 << 27  # bytes of a tokenizer.json: one of 256,000 tokens has 33 million


def tokenizer_of(folder: Path, config: dict[str, Any], vocab_size: int, *, framed: bool) -> ForeignTokenizer:
    """The tokenizer of a folder for a model with `vocab_size` rows. framed: it reads texts in a frame, as BERT does."""
    model, file = _model(folder)
    told = _said(folder, config, model)
    begins = ("cls_token", "bos_token") if framed else ("bos_token", "eos_token")
    ends = ("sep_token", "eos_token") if framed else ("eos_token", "bos_token")
    uses = {"start": begins, "end": ends, "mask": ("mask_token",), "pad": ("pad_token",), "unknown": ("unk_token",)}
    special = {}
    for use, names in uses.items():
        found = next((told[name] for name in names if name in told), None)
        if found is not None:
            special[use] = found
        elif use in ("start", "end"):
            raise CheckpointError(f"{folder / SETTINGS}: {names[0]}: no file of the folder says it")
    try:
        return ForeignTokenizer(model, special, vocab_size)
    except (ValueError, KeyError, TypeError, AttributeError, RegardError) as error:
        reason = " ".join(str(error).split())[:LONGEST_TOLD]
        raise CheckpointError(f"{file}: {reason}") from None


def _model(folder: Path) -> tuple[dict[str, Any], Path]:
    """The JSON of a tokenizer, and the file it is from."""
    file = folder / FILE
    if file.exists():
        found = read_json(file, LARGEST)
        if not isinstance(found, dict):
            raise CheckpointError(f"{file}: expected an object, found {type(found).__name__}")
        return found, file
    older = next((folder / name for name in OLDER if (folder / name).exists()), None)
    if older is None:
        raise CheckpointError(f"{folder}: has no {FILE}, by which the model reads text")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise CheckpointError(f"{older}: {FILE} is made of it by transformers: pip install transformers") from None
    try:
        made: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        return json.loads(made.backend_tokenizer.to_str()), older
    except Exception as error:
        reason = " ".join(str(error).split())[:LONGEST_TOLD]
        raise CheckpointError(f"{older}: transformers makes no {FILE} of it: {reason}") from None


def _said(folder: Path, config: dict[str, Any], model: dict[str, Any]) -> dict[str, str]:
    """Special tokens by their names: of the tokenizer's settings, and where these are silent of the model's config."""
    found: dict[str, str] = {}
    for name in (SETTINGS, NAMED):
        if not (folder / name).exists():
            continue
        content = read_json(folder / name)
        if not isinstance(content, dict):
            raise CheckpointError(f"{folder / name}: expected an object, found {type(content).__name__}")
        for key, value in content.items():
            token = value.get("content") if isinstance(value, dict) else value
            if key.endswith("_token") and isinstance(token, str):
                found.setdefault(key, token)
    by_id = {token["id"]: token["content"] for token in model.get("added_tokens", ()) if isinstance(token, dict)}
    for key in ("bos_token", "eos_token"):
        number = config.get(f"{key}_id")
        number = number[0] if isinstance(number, list) and number else number
        if isinstance(number, int) and number in by_id:
            found.setdefault(key, by_id[number])
    return found
