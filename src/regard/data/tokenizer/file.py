"""Making, saving and loading tokenizers by the name of their kind. A tokenizer is one JSON file and never a pickle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regard.data.tokenizer.character import ByteTokenizer, CharacterTokenizer
from regard.data.tokenizer.foreign import ForeignTokenizer, JsonText
from regard.data.tokenizer.integer import IntegerTokenizer
from regard.data.tokenizer.piece import PieceTokenizer
from regard.data.tokenizer.subword import BytePairTokenizer, UnigramTokenizer
from regard.data.tokenizer.tokenizer import Tokenizer
from regard.data.tokenizer.word import WordTokenizer
from regard.errors import LONGEST_TOLD, CheckpointError, RegardError, UsageError, nearest
from regard.storage.regular import NotRegular, TooLarge, read_regular

LARGEST_FILE = 1 << 30  # bytes: ten million words take about 150 million
TOKENIZERS: dict[str, type[Tokenizer]] = {
    cls.kind: cls
    for cls in (
        ByteTokenizer,
        CharacterTokenizer,
        WordTokenizer,
        BytePairTokenizer,
        UnigramTokenizer,
        IntegerTokenizer,
    )
}


# With those that come with a model, and cannot be made of a text.
KINDS = TOKENIZERS | {cls.kind: cls for cls in (ForeignTokenizer, PieceTokenizer)}


def train_tokenizer(kind: str, texts: Iterable[str], *, vocab_size: int | None = None) -> Tokenizer:
    """A tokenizer of a kind for these texts. `vocab_size` is the most tokens it may have, `<eos>` included."""
    if kind not in TOKENIZERS:
        raise UsageError(f"unknown tokens {kind!r}{nearest(kind, TOKENIZERS)}")
    if kind == "bytes":
        if vocab_size not in (None, 257):
            raise UsageError(
                f"vocab_size {vocab_size}: bytes always have 257 tokens; choose tokens = bpe or leave it out"
            )
        return ByteTokenizer()
    trained: Any = TOKENIZERS[kind]
    return trained.train(texts, vocab_size)


def from_dict(data: Any, where: str = "tokenizer") -> Tokenizer:
    """The tokenizer that `to_dict` wrote. `where` names the file in errors."""
    if not isinstance(data, dict) or data.get("format") != "regard-tokenizer":
        raise CheckpointError(f'{where} is no tokenizer of regard: it has no "format": "regard-tokenizer"')
    if data.get("version") != 1:
        raise CheckpointError(
            f"{where} has format version {str(data.get('version'))[:40]}, this regard reads version 1"
        )
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise CheckpointError(f"{where}: unknown kind of tokenizer {str(kind)[:40]!r}{nearest(str(kind), KINDS)}")
    try:
        return KINDS[kind].from_settings(data)
    except KeyError as error:
        raise CheckpointError(
            f"{where} is damaged: {error.args[0]!r} is missing; copy it again from its origin"
        ) from None
    except (ValueError, TypeError, AttributeError, RegardError, RecursionError, OverflowError) as error:
        reason = " ".join(str(error).split())[:LONGEST_TOLD]
        raise CheckpointError(f"{where} is damaged: {reason}; copy it again from its origin") from None


def as_file(tokenizer: Tokenizer) -> bytes:
    """The content of `tokenizer.json`."""
    return (json.dumps(tokenizer.to_dict(), ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def save(tokenizer: Tokenizer, path: Path | str) -> None:
    """Write `tokenizer.json`."""
    Path(path).write_bytes(as_file(tokenizer))


def _unread(content: bytes) -> dict[str, Any] | None:
    """What `as_file` wrote of a library's tokenizer, with that one's JSON left to the library; None of all else.

    Where the text between the two marks is not one value, the library says so.
    """
    begin = b'{"format":"regard-tokenizer","version":1,"kind":"huggingface","model":'
    end = content.rfind(b',"special":')
    if not content.startswith(begin) or end < len(begin):
        return None
    rest = json.loads(b"{" + content[end + 1 :])
    if rest.keys() != {"special", "vocab_size"}:
        return None
    told = {"format": "regard-tokenizer", "version": 1, "kind": ForeignTokenizer.kind}
    return told | {"model": JsonText(content[len(begin) : end].decode())} | rest


def load(path: Path | str) -> Tokenizer:
    """Read `tokenizer.json`."""
    try:
        content = read_regular(path, LARGEST_FILE)
        data = _unread(content) or json.loads(content)
    except (NotRegular, TooLarge) as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read the tokenizer {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{path} is damaged, it is no JSON ({reason}); copy it again from its origin") from None
    return from_dict(data, str(path))
