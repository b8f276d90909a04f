"""Embeddings that begin with vectors of words, by name: `train.vectors` is a file of them, or a run of imported ones.

Rows are found by the word of each token, as it is or in small letters, and turned to the size of those that they
replace, so that a model begins as it would without them; all others stay random.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.core.fitted import Tell
from regard.data.tokenizer import Tokenizer
from regard.data.word_vectors import WordVectors, has_vectors, read_vectors
from regard.errors import UsageError
from regard.tasks.processor import Processor, Tokenizes

TABLE = "token_to_vector"


def start_vectors(model: nn.Module, processor: Processor, source: str, tell: Tell) -> None:
    """Give the embeddings of tokens the vectors of their words, and tell how many there were."""
    if not isinstance(processor, Tokenizes):
        raise UsageError(f"train.vectors: {source}: the words of one text are needed, and here there are two or none")
    names = words_of(processor.tokenizer)
    found = _read(source, {form for word in names for form in (word, word.lower()) if form})
    tables = [part for name, part in model.named_modules() if name.rpartition(".")[2] == TABLE]
    tables = [part for part in tables if isinstance(part, nn.Embedding) and part.num_embeddings >= len(names)]
    if not tables:
        raise UsageError(f"train.vectors: {source}: the model has no embedding of tokens to begin with them")
    row_of = {word: row for row, word in enumerate(found.words)}
    pairs = [(token, row_of.get(word, row_of.get(word.lower()))) for token, word in enumerate(names) if word]
    pairs = [(token, row) for token, row in pairs if row is not None]
    for table in {id(part): part for part in tables}.values():
        if table.embedding_dim != found.width:
            told = f"has vectors of {found.width} numbers and the model embeddings of {table.embedding_dim}"
            raise UsageError(f"train.vectors: {source}: {told}; choose --set model.d_model={found.width}")
        _write(table, pairs, found)
    words = sum(map(bool, names))
    tell.note(f"vectors: {len(pairs):,} of {words:,} words found among {found.read:,} in {source}")


def words_of(tokenizer: Tokenizer) -> list[str]:
    """The word of each token, "" for one that is none."""
    return [
        "" if tokenizer.is_special(token) else tokenizer.token_text(token).strip()
        for token in range(tokenizer.vocab_size)
    ]


def _write(table: nn.Embedding, pairs: list[tuple[int, int]], found: WordVectors) -> None:
    if not pairs:
        return
    tokens, rows = (torch.tensor(side) for side in zip(*pairs, strict=True))
    vectors = torch.from_numpy(found.vectors)[rows]
    with torch.no_grad():
        own = table.weight[tokens]
        size = vectors.std().clamp(min=1e-12)
        table.weight[tokens] = (vectors * (own.std() / size)).to(own.dtype)


def _read(source: str, wanted: set[str]) -> WordVectors:
    path = Path(source).expanduser()
    if has_vectors(path):
        return read_vectors(path, wanted)
    if not path.is_dir():
        raise UsageError(f"train.vectors: {source}: no file of word vectors (.txt, .vec) and no run of them")
    from regard.data import tokenizer
    from regard.storage import tensors
    from regard.training import run_folder

    saved = run_folder.read_config(path)
    if saved.get("imported", {}).get("architecture") != "vectors":
        raise UsageError(f"train.vectors: {source}: is no run of imported word vectors; a whole model is for --from")
    names = words_of(tokenizer.load(run_folder.verified_tokenizer(path)))
    (rows,) = tensors.read(run_folder.verified_weights(path)).values()
    kept = [number for number, word in enumerate(names) if word in wanted and number]
    numbers: Any = rows[kept].numpy() if kept else np.zeros((0, rows.shape[1]), np.float32)
    return WordVectors([names[number] for number in kept], numbers, sum(map(bool, names)))
