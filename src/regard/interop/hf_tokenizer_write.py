"""Our tokenizers as `tokenizer.json` and `tokenizer_config.json` of Hugging Face, which give the same ids.

    bytes, bpe, unigram     over the bytes of UTF-8, as they are
    chars, words            a list of them, after the text was cut in the same way
    of other programs       as they came

Text that spells a special token stays text, as with us: `split_special_tokens`. What has no such file is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.subword import BYTE_CHARACTERS
from regard.data.tokenizer.tokenizer import EOS
from regard.errors import UsageError

UNKNOWN, MASK = "<unk>", "<mask>"
GENERATION = "generation_config.json"
FOREIGN = "huggingface"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
EMPTY = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
NO_MERGES = {"dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False}
# Names of transformers for what a special token is for.
CAUSAL = {"start": "bos_token", "end": "eos_token", "mask": "mask_token", "pad": "pad_token", "unknown": "unk_token"}
FRAMED = CAUSAL | {"start": "cls_token", "end": "sep_token"}


@dataclass(frozen=True)
class HfTokenizer:
    """model: the content of tokenizer.json. special: tokens by what they are for. ids: of them, by keys of a config.

    chat  the template of conversations, "" without one. turn: the id of what ends an answer, where not every end does.
    """

    model: dict[str, Any]
    special: dict[str, str]
    ids: dict[str, int]
    framed: bool
    length: int
    chat: str = ""
    turn: int | None = None

    def files(self) -> dict[str, bytes]:
        names = FRAMED if self.framed else CAUSAL
        settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": self.length}
        settings |= {names[use]: token for use, token in self.special.items() if use in names}
        settings |= {"clean_up_tokenization_spaces": False, "split_special_tokens": self.owns_specials}
        settings |= {"chat_template": self.chat} if self.chat else {}
        contents = {"tokenizer.json": self.model, "tokenizer_config.json": settings}
        if self.turn is not None:  # a text ends with either of them
            contents[GENERATION] = self.ids | {"eos_token_id": [self.ids["eos_token_id"], self.turn]}
        return {name: (json.dumps(one, ensure_ascii=False, indent=2) + "\n").encode() for name, one in contents.items()}

    @property
    def owns_specials(self) -> bool:
        """Whether they are ours, which no text can spell."""
        return self.special.get("end") == EOS


def hf_tokenizer(tokenizer: Tokenizer, *, framed: bool, length: int, ends: bool = False) -> HfTokenizer:
    """framed: a text is read between its start and its end, as BERT reads it. ends: an end stands after it."""
    if tokenizer.kind == FOREIGN:
        return _foreign(tokenizer, framed, length, ends)
    if tokenizer.kind not in MADE:
        raise UsageError(f"tokens = {tokenizer.kind}: tokenizer.json cannot say it; {', '.join(MADE)} can be said")
    eos = tokenizer.eos_id
    special, added = {"start": EOS, "end": EOS}, [_added(eos, EOS)]
    if framed:
        special["mask"] = MASK
        added.append(_added(tokenizer.vocab_size, MASK))
    if tokenizer.unknown_id is not None:
        special["unknown"] = UNKNOWN
    frame = _frame([] if ends else [EOS], [EOS] if framed or ends else [], {EOS: eos})
    model = EMPTY | MADE[tokenizer.kind](tokenizer.settings()) | {"added_tokens": added, "post_processor": frame}
    ids = {"bos_token_id": eos, "eos_token_id": eos} | ({"decoder_start_token_id": eos} if ends else {})
    return HfTokenizer(model, special, ids, framed, length)


def _foreign(tokenizer: Tokenizer, framed: bool, length: int, ends: bool) -> HfTokenizer:
    """One of another program, as it came."""
    settings = tokenizer.settings()
    special, model = settings["special"], settings["model"]
    ids = {"eos_token_id": tokenizer.eos_id}
    if not ends:
        ids["bos_token_id"] = tokenizer.start_id
    else:  # what writing begins with is a key of the config; what stands before every text is called its start
        ids["decoder_start_token_id"] = tokenizer.start_id
        special = {use: token for use, token in special.items() if use != "start"}
        if "first" in special:
            special["start"], ids["bos_token_id"] = special["first"], tokenizer.opening[-1]
    if tokenizer.pad_id is not None:
        ids["pad_token_id"] = tokenizer.pad_id
    if framed and model.get("post_processor") is None:  # which BERT's own class puts around a text by itself
        around = {special["start"]: tokenizer.start_id, special["end"]: tokenizer.eos_id}
        model = model | {"post_processor": _frame([special["start"]], [special["end"]], around)}
    turn = tokenizer.turn_id if "turn" in special else None
    return HfTokenizer(model, special, ids, framed, length, tokenizer.chat, turn)


def _added(number: int, token: str) -> dict[str, Any]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": token, **plain, "special": True}


def _frame(before: list[str], after: list[str], ids: dict[str, int]) -> dict[str, Any]:
    """Special tokens around a text."""
    text = {"Sequence": {"id": "A", "type_id": 0}}
    begins, ends = ([{"SpecialToken": {"id": token, "type_id": 0}} for token in side] for side in (before, after))
    return {
        "type": "TemplateProcessing",
        "single": [*begins, text, *ends],
        "pair": [*begins, text, *ends, {"Sequence": {"id": "B", "type_id": 0}}, *ends],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]} for token, number in ids.items()},
    }


def _subwords(settings: dict[str, Any]) -> dict[str, Any]:
    return settings["model"] | {"decoder": BYTE_LEVEL}


def _bytes(_settings: dict[str, Any]) -> dict[str, Any]:
    vocabulary = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}
    model = {"type": "BPE", "unk_token": None, "byte_fallback": False, "ignore_merges": False} | NO_MERGES
    whole = BYTE_LEVEL | {"use_regex": False}
    return {"pre_tokenizer": whole, "decoder": whole, "model": model | {"vocab": vocabulary, "merges": []}}


def _characters(settings: dict[str, Any]) -> dict[str, Any]:
    if "others" not in settings:
        raise UsageError("tokens = chars: of a run from before there was <unk>, which tokenizer.json cannot say")
    listed = [*settings["characters"], UNKNOWN]
    # Every character for itself, ends of lines too.
    cut = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
    return {"pre_tokenizer": cut, "decoder": {"type": "Fuse"}, "model": _listed(listed)}


def _words(settings: dict[str, Any]) -> dict[str, Any]:
    listed = [UNKNOWN, *(["\n"] if settings["has_lines"] else []), *settings["words"]]
    parts = [
        {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False},
        {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": False},
    ]
    line_ends = {"type": "Replace", "pattern": {"String": "\r\n"}, "content": "\n"}
    cut = {"type": "Sequence", "pretokenizers": parts}
    return {"normalizer": line_ends, "pre_tokenizer": cut, "decoder": None, "model": _listed(listed)}


def _listed(tokens: list[str]) -> dict[str, Any]:
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN}


MADE: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "bytes": _bytes,
    "bpe": _subwords,
    "unigram": _subwords,
    "chars": _characters,
    "words": _words,
}
