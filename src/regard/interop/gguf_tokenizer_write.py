"""Tokenizers of Hugging Face as GGUF files hold them: pairs of bytes that are joined, or pieces with scores.

    gpt2     merges over the bytes of UTF-8, cut into words as GPT-2 does
    llama    pieces with `▁` for a space, of which neighbours with the best score are joined, bytes for what has none

What cuts text in another way is refused.
"""

from __future__ import annotations

from typing import Any

from regard.errors import UsageError
from regard.interop.gguf_tokenizer import CONTROL, NORMAL, OWN, SPACE, UNKNOWN, USES
from regard.interop.hf_tokenizer_write import HfTokenizer

UNUSED, BYTE = 5, 6
WORST = -1e6  # of what no merge makes
# What of a text is rewritten before it is looked up, as such a file says it.
PREPENDED = {"type": "Prepend", "prepend": SPACE}
REPLACED = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
# Settings of BPE that such a file has no key for.
UNSAID = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")


def tokenizer_facts(tokenizer: HfTokenizer, vocab_size: int) -> dict[str, Any]:
    """Keys and values. vocab_size: rows of the model."""
    model, inner = tokenizer.model, tokenizer.model["model"]
    if inner["type"] != "BPE":
        raise UsageError(f"a tokenizer of the kind {inner['type']}: GGUF files hold BPE; train with data.tokens=bpe")
    for key in UNSAID:
        if inner.get(key):
            raise UsageError(f"a tokenizer with {key} = {inner[key]}: a GGUF file cannot say it")
    merges = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in inner["merges"]]
    tokens, kinds = _tokens(model, vocab_size)
    facts: dict[str, Any] = {"tokens": tokens, "token_type": kinds, "add_bos_token": True}
    for use, name in USES.items():
        if tokenizer.special.get(use) in tokens:
            facts[f"{name}_token_id"] = tokens.index(tokenizer.special[use])
    if _cuts_as_gpt2(model, bool(merges)):
        facts |= {"model": "gpt2", "pre": "gpt-2", "merges": [" ".join(pair) for pair in merges]}
    elif inner.get("byte_fallback"):
        facts |= {"model": "llama", "scores": _scores(tokens, merges), "add_space_prefix": _prepends(model)}
    else:
        raise UsageError("a tokenizer that cuts text in its own way: GGUF files hold those of GPT-2 and of Llama 2")
    chat = {"tokenizer.chat_template": tokenizer.chat} if tokenizer.chat else {}
    return {f"tokenizer.ggml.{key}": value for key, value in facts.items() if value != []} | chat


def _tokens(model: dict[str, Any], vocab_size: int) -> tuple[list[str], list[int]]:
    """Every token by its id, and what it is; rows without a token get names that no text has."""
    inner, unknown = model["model"], model["model"].get("unk_token")
    by_id = {number: token for token, number in inner["vocab"].items()}
    kinds = dict.fromkeys(by_id, NORMAL)
    for number, token in by_id.items():
        if inner.get("byte_fallback") and len(token) == 6 and token.startswith("<0x"):
            kinds[number] = BYTE
    for one in model.get("added_tokens", ()):
        by_id[one["id"]] = one["content"]
        kinds[one["id"]] = UNKNOWN if one["content"] == unknown else CONTROL if one["special"] else OWN
    tokens = [by_id.get(number, f"[PAD{number}]") for number in range(vocab_size)]
    return tokens, [kinds.get(number, UNUSED) for number in range(vocab_size)]


def _cuts_as_gpt2(model: dict[str, Any], joins: bool) -> bool:
    """Whether words are those of GPT-2; where nothing is ever joined, how text is cut does not matter."""
    cut = model.get("pre_tokenizer") or {}
    plain = cut.get("type") == "ByteLevel" and not cut.get("add_prefix_space") and model.get("normalizer") is None
    return plain and (cut.get("use_regex", True) or not joins)


def _prepends(model: dict[str, Any]) -> bool:
    """Whether a blank is put before a text; what is done to it besides writing a sign for blanks is refused."""
    cut, normalizer = model.get("pre_tokenizer"), model.get("normalizer") or {"type": "Sequence", "normalizers": []}
    if cut is not None:
        raise UsageError(f"a tokenizer that cuts text by {cut['type']}: a GGUF file of Llama 2's kind cuts nothing")
    parts = normalizer["normalizers"] if normalizer["type"] == "Sequence" else [normalizer]
    for part in parts:
        if part not in (PREPENDED, REPLACED):
            raise UsageError(f"a tokenizer that rewrites text by {part['type']}: a GGUF file cannot say it")
    if REPLACED not in parts:
        raise UsageError(f"a tokenizer that does not write {SPACE} for a space: a GGUF file says that it does")
    return PREPENDED in parts


def _scores(tokens: list[str], merges: list[tuple[str, ...]]) -> list[float]:
    """The better the earlier a merge makes it."""
    rank: dict[str, int] = {}
    for number, pair in enumerate(merges):
        rank.setdefault("".join(pair), number)
    return [-float(rank[token]) if token in rank else WORST for token in tokens]
