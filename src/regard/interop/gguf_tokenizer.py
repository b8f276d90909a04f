"""The tokenizer of a GGUF file: pieces with scores (SentencePiece), of which neighbours with the best score are joined.

The same is said by merges in the order of those scores, which Hugging Face `tokenizers` applies.
"""

from __future__ import annotations

import json
import math
from typing import Any

from regard.data.tokenizer.foreign import ForeignTokenizer
from regard.errors import LONGEST_TOLD, CheckpointError
from regard.interop.gguf_file import GgufFile

# Types of tokens: a piece of text, for what has none, of the program, of a person.
NORMAL, UNKNOWN, CONTROL, OWN = 1, 2, 3, 4
SPACE = "▁"
LISTS = {"tokens": str, "token_type": int, "scores": float, "merges": str}
LONGEST = 1 << 10  # characters of a piece; those of real files have at most some hundred
USES = {"start": "bos", "end": "eos", "turn": "eot", "pad": "padding", "unknown": "unknown"}


def tokenizer_of(file: GgufFile, vocab_size: int) -> ForeignTokenizer:
    """The tokenizer of a file with its special tokens."""
    facts = {key.removeprefix("tokenizer.ggml."): value for key, value in file.facts.items()}
    pairs = facts.get("model") == "gpt2" and facts.get("pre") == "gpt-2"
    if facts.get("model") != "llama" and not pairs:
        told = f"tokenizer.ggml.model: {str(facts.get('model'))[:40]!r} is not supported, 'llama' and GPT-2's are"
        raise CheckpointError(f"{file.path}: {told}; import the folder that the file was made of")
    for name, kind in LISTS.items():
        if not isinstance(facts.get(name, []), list) or not all(isinstance(one, kind) for one in facts.get(name, [])):
            raise CheckpointError(f"{file.path}: tokenizer.ggml.{name}: expected a list of {kind.__name__}")
    tokens, kinds = (facts.get(name, []) for name in ("tokens", "token_type"))
    scores = [0.0] * len(tokens) if pairs else facts.get("scores", [])
    if any(map(math.isnan, scores)):
        raise CheckpointError(f"{file.path}: tokenizer.ggml.scores: some are no number")
    if not len(tokens) == len(scores) == len(kinds) or len(set(tokens)) != len(tokens):
        raise CheckpointError(f"{file.path}: tokenizer.ggml.tokens: tokens, scores and types do not go together")
    special = {}
    for use, name in USES.items():
        number = facts.get(f"{name}_token_id")
        if isinstance(number, int) and 0 <= number < len(tokens):
            special[use] = tokens[number]
    try:
        if pairs:
            made = _of_pairs(tokens, kinds, facts.get("merges", []))
        else:
            made = _made(tokens, scores, kinds, bool(facts.get("add_space_prefix", True)))
        chat = file.facts.get("tokenizer.chat_template", "")
        return ForeignTokenizer(json.loads(made), special, vocab_size, chat if isinstance(chat, str) else "")
    except (ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:LONGEST_TOLD]
        raise CheckpointError(f"{file.path}: tokenizer.ggml: {reason}") from None


def _made(tokens: list[str], scores: list[float], kinds: list[int], prefix: bool) -> str:
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

    ids = {token: number for number, token in enumerate(tokens)}
    plain = {token for token, kind in zip(tokens, kinds, strict=True) if kind not in (CONTROL, OWN, UNKNOWN)}
    merges = merges_of(ids, scores, plain)
    unknown = next((token for token, kind in zip(tokens, kinds, strict=True) if kind == UNKNOWN), None)
    model: Any = models.BPE(vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    made = Tokenizer(model)
    parts = [normalizers.Prepend(SPACE)] if prefix else []
    made.normalizer = normalizers.Sequence([*parts, normalizers.Replace(" ", SPACE)])
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    made.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    told = [(token, kind) for token, kind in zip(tokens, kinds, strict=True) if kind in (CONTROL, OWN, UNKNOWN)]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token, kind in told if kind != OWN])
    made.add_tokens([AddedToken(token, special=False, normalized=False) for token, kind in told if kind == OWN])
    return made.to_str()


def _of_pairs(tokens: list[str], kinds: list[int], merges: list[str]) -> str:
    """As GPT-2 has it: merges over bytes, within words."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    joined = [(left, right) for left, _, right in (pair.partition(" ") for pair in merges)]
    model: Any = models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=joined)
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind != NORMAL]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return made.to_str()


def merges_of(ids: dict[str, int], scores: list[float], plain: set[str]) -> list[tuple[str, str]]:
    """Pairs of tokens that make one, those with the best score first."""
    found = []
    lengths = {len(token) for token in plain}
    if max(lengths, default=0) > LONGEST:
        raise ValueError(f"a piece of {max(lengths):,} characters, and {LONGEST:,} are the most")
    for token in plain:
        for cut in lengths:
            if len(token) - cut not in lengths:
                continue
            left, right = token[:cut], token[cut:]
            if left in plain and right in plain:
                found.append((-scores[ids[token]], ids[left], ids[right], left, right))
    found.sort()
    return [(left, right) for *_, left, right in found]
