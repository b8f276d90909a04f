"""A file of word vectors as a run: the vector of a word wherever it stands, that of a text the direction of their mean.

Rows of what is no word, and of words that the file lacks, are zeros: they turn no mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.stack import StackConfig
from regard.data.tokenizer.word import UNKNOWN, WordTokenizer
from regard.data.word_vectors import WordVectors, read_vectors
from regard.errors import blamed_on
from regard.interop.architecture import Plan
from regard.interop.hf_folder import LONGEST, ForeignModel
from regard.interop.tensor_files import Weights
from regard.interop.weight_table import Line
from regard.layers.embedding import EmbeddingConfig
from regard.mixers.apart import ApartConfig
from regard.models.sentence_encoder import SentenceEncoderConfig
from regard.storage.tensors import Form, forms_of, weights_metadata, weights_of
from regard.training.estimate import on_meta

KIND, NAME, MODEL = "vectors", "vectors", "bert"


@contextmanager
def opened_vectors(path: Path) -> Iterator[ForeignModel]:
    """The model of a file of word vectors."""
    found = read_vectors(path)
    kept = [number for number, word in enumerate(found.words) if _is_word(word)]
    tokenizer = WordTokenizer([found.words[number] for number in kept], spaced_lines=False, has_lines=False)
    # The mask has a row after those of the tokenizer.
    rows = Table(path, found, kept, tokenizer.vocab_size + 1)
    width = found.width
    with blamed_on(path):
        embedding = EmbeddingConfig(rows.n_rows, width)
        config = SentenceEncoderConfig(embedding, StackConfig(width, (ApartConfig(width),)), normalised=True)
        model: Any = on_meta(config)
    left = len(found.words) - len(kept) - (UNKNOWN in found.words)
    lost = (f"words that hold blanks: {left:,}",) if left else ()
    table = [Line("embedding.token_to_vector.weight", NAME)]
    plan = Plan(MODEL, config, table, 0, length=LONGEST, lost=lost)
    shapes = forms_of(weights_of(model))
    weights = Weights(rows, plan, shapes, str(path))
    yield ForeignModel(path, KIND, plan, tokenizer, weights, shapes, weights_metadata(model), LONGEST)


def _is_word(word: str) -> bool:
    return word != UNKNOWN and not any(blank in word for blank in " \n")


class Table:
    """The rows of a tokenizer's words: one tensor, made when it is asked for."""

    def __init__(self, path: Path, found: WordVectors, kept: list[int], n_rows: int) -> None:
        self.path, self.found, self.kept, self.n_rows = path, found, kept, n_rows
        self.forms = {NAME: Form((n_rows, found.width), "F32")}

    def __getitem__(self, name: str) -> Tensor:
        rows = np.zeros((self.n_rows, self.found.width), np.float32)
        rows[1 : 1 + len(self.kept)] = self.found.vectors[self.kept]
        if UNKNOWN in self.found.words:
            rows[0] = self.found.vectors[self.found.words.index(UNKNOWN)]
        return torch.from_numpy(rows)

    def told(self, name: str) -> str:
        return f"{self.path}: {name}"
