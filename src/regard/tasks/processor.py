"""Processor: what turns a person's input into a model's and back, and the files of the run folder that hold it."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from regard.core.config import decode
from regard.core.data_spec import DataSpec
from regard.core.limits import require_count
from regard.data.tokenizer import Tokenizer, as_file
from regard.data.tokenizer import load as load_tokenizer
from regard.errors import UsageError, blamed_on, nearest
from regard.storage.manifest import read_json

TOKENIZER, PROCESSOR = "tokenizer.json", "codec.json"
LARGEST_PROCESSOR = 1 << 28  # bytes: of pairs with two vocabularies it holds one of them


class Processor(ABC):
    """What turns a person's input into a model's and back: tokenizers, labels, scales. It is saved with the run."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """The files of the run folder that hold it."""

    @property
    @abstractmethod
    def spec(self) -> DataSpec:
        """What a model that goes with it was built for."""

    @cached_property
    def hash(self) -> str:
        digest = hashlib.sha256()
        for name, content in sorted(self.files().items()):
            digest.update(name.encode() + b"\0" + content)
        return digest.hexdigest()


@runtime_checkable
class Tokenizes(Protocol):
    """A processor with one tokenizer."""

    @property
    def tokenizer(self) -> Tokenizer: ...


class Ids(tuple[int, ...]):
    """A text by the ids of its tokens, where somebody has these and not the text."""


def ids_of(tokenizer: Tokenizer, text: str | Ids) -> np.ndarray:
    """The ids of a text, as they are where they are given."""
    if not isinstance(text, Ids):
        return tokenizer.encode(text)
    for token in (min(text, default=0), max(text, default=0)):
        if not 0 <= token < tokenizer.vocab_size:
            most = tokenizer.vocab_size - 1
            raise UsageError(f"a text has token {token}, and its tokenizer 0 to {most}: use the run's own tokens")
    return np.array(text, dtype=np.int64)


def files_of(tokenizer: Tokenizer, told: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a processor that is a tokenizer and some plain values."""
    return {TOKENIZER: as_file(tokenizer), PROCESSOR: json.dumps(told, ensure_ascii=False).encode()}


def read_files(verified: Callable[[str], Path], hints: Mapping[str, Any]) -> tuple[Tokenizer, dict[str, Any]]:
    """What `files_of` wrote, each value of the type that `hints` says."""
    return load_tokenizer(verified(TOKENIZER)), read_facts(verified, hints)


def read_facts(verified: Callable[[str], Path], hints: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a processor's file, each of the type that `hints` says; what has a default may be missing."""
    file = verified(PROCESSOR)
    told = read_json(file, LARGEST_PROCESSOR)
    with blamed_on(file):
        if not isinstance(told, dict):
            raise UsageError(f"expected an object, found {type(told).__name__}")
        for key in told:
            if key not in hints:
                raise UsageError(f"unknown key {key[:40]!r}{nearest(key, hints)}")
        found = {key: decode(value, hints[key], key) for key, value in told.items()}
        if not found.get("classes", True):
            raise UsageError("classes: there are none")
        for key, value in found.items():
            if hints[key] is int:
                require_count(value, key)
        return found
