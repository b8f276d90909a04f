"""The network of the package g2p-en, which spells English words in phonemes: a GRU reads letters, another one writes.

    enc_emb, enc_w_ih, enc_w_hh, enc_b_ih, enc_b_hh      the letters, and the GRU that reads them
    dec_emb, dec_w_ih, ..                                the phonemes, and the GRU that writes them
    fc_w, fc_b                                           its logits

The state that the reader ends in is the one that the writer begins with. Accents are taken off and capitals made small,
as the package does with a text; its list of known words and its reading of numbers are no part of the network.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.data_spec import DataSpec
from regard.core.registry import entry
from regard.data.tokenizer.foreign import ForeignTokenizer
from regard.errors import CheckpointError, UsageError, blamed_on
from regard.interop.architecture import Plan
from regard.interop.hf_folder import ForeignModel
from regard.interop.tensor_files import Weights
from regard.interop.weight_table import Line
from regard.storage.tensors import Form, forms_of, weights_metadata, weights_of
from regard.training.estimate import on_meta

PACKAGE, FILE, PREFIX, NPY = "g2p_en", "checkpoint20.npz", "g2p:", ".npy"
MODEL, LENGTH, LARGEST = "seq2seq", 64, 1 << 28
LETTERS = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
VOWELS = ["AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"]
OTHERS = [
    "B",
    "CH",
    "D",
    "DH",
    "F",
    "G",
    "HH",
    "JH",
    "K",
    "L",
    "M",
    "N",
    "NG",
    "P",
    "R",
    "S",
    "SH",
    "T",
    "TH",
    "V",
    "W",
    "Y",
    "Z",
    "ZH",
]
# By name, a vowel with each of its three stresses; UW alone has a form without one too.
PHONEMES = sorted([f"{vowel}{stress}" for vowel in VOWELS for stress in range(3)] + OTHERS + ["UW"])
PHONEMES = ["<pad>", "<unk>", "<s>", "</s>", *PHONEMES]
CELL = {"weight_ih_l0": "w_ih", "weight_hh_l0": "w_hh", "bias_ih_l0": "b_ih", "bias_hh_l0": "b_hh"}
TABLE = [
    Line("encoder.embedding.token_to_vector.weight", "enc_emb"),
    *(Line(f"encoder.stack.layers.0.mixer.cell.{ours}", f"enc_{theirs}") for ours, theirs in CELL.items()),
    Line("decoder.embedding.token_to_vector.weight", "dec_emb"),
    *(Line(f"decoder.stack.mixer.layers.0.mixer.cell.{ours}", f"dec_{theirs}") for ours, theirs in CELL.items()),
    Line("decoder.head.weight", "fc_w"),
    Line("decoder.head.bias", "fc_b"),
]


def is_npz(path: Path) -> bool:
    """Whether a file is called as numpy's archives are."""
    return path.suffix.lower() == ".npz" and path.is_file()


def packaged(source: str) -> Path:
    """The file of the installed package, of which nothing is run."""
    if source != PREFIX:
        raise UsageError(f"{source}: is written {PREFIX} for the installed package g2p-en, or as the path of its .npz")
    found = find_spec(PACKAGE)
    if found is None or not found.origin:
        raise UsageError(f"{source}: the package is not installed: pip install g2p-en")
    return Path(found.origin).parent / FILE


@contextmanager
def opened_g2p(path: Path) -> Iterator[ForeignModel]:
    """The model of such a file, while it is open."""
    with _opened(path) as archive:
        files = Arrays(path, archive)
        width = files.forms["enc_emb"].shape[-1] if "enc_emb" in files.forms else 0
        settings = {"d_model": width, "cell": "gru", "encoder": "gru", "give": "first", "handed": True, "dropout": 0.0}
        with blamed_on(path):
            config = entry(MODEL).config(DataSpec(len(PHONEMES), len(LETTERS)), "small", **settings)
            model: Any = on_meta(config)
        plan = Plan(MODEL, config, TABLE, 0, length=LENGTH)
        shapes = forms_of(weights_of(model))
        weights = Weights(files, plan, shapes, "the network of g2p-en")
        source, target = letters_tokenizer(), phonemes_tokenizer()
        yield ForeignModel(path, "g2p", plan, target, weights, shapes, weights_metadata(model), LENGTH, source)


class Arrays:
    """Arrays of an archive as tensors, one at a time. forms: shape and number type of each by its name."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        self.forms: dict[str, Form] = {}
        for name in archive.namelist():
            array = self._array(name)
            kinds = {"float64": "F64", "float32": "F32", "float16": "F16"}
            self.forms[name.removesuffix(NPY)] = Form(array.shape, kinds.get(array.dtype.name, array.dtype.name))

    def __getitem__(self, name: str) -> Tensor:
        return torch.from_numpy(self._array(name + NPY))

    def told(self, name: str) -> str:
        return f"{self.path}: {name}"

    def _array(self, member: str) -> np.ndarray:
        """The numbers of a member, which must be as many as its header says: no more is ever asked of memory."""
        try:
            content = self._archive.read(member)
            data = io.BytesIO(content)
            version = np.lib.format.read_magic(data)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = header(data)
            if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - data.tell():
                raise ValueError(f"{list(shape)} of {dtype} is not what follows")
            found = np.frombuffer(content, dtype, offset=data.tell()).reshape(shape, order="F" if by_columns else "C")
            return found.astype(dtype.newbyteorder("="))
        except MemoryError:
            raise
        except Exception as error:  # of zlib, of the archive and of numpy, in many forms
            reason = " ".join(str(error).split())[:120]
            raise CheckpointError(f"{self.path}: {member.removesuffix(NPY)[:80]}: cannot be read: {reason}") from None


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(path))
        except (ValueError, OSError, NotImplementedError, zipfile.BadZipFile) as error:
            reason = " ".join(str(error).split())[:120]
            raise CheckpointError(f"{path}: not a readable archive of numpy: {reason}") from None
        size = sum(member.file_size for member in archive.infolist())
        if size > LARGEST:
            raise CheckpointError(f"{path}: unpacks to {size:,} bytes, and the network of g2p-en has 3 million")
        yield archive


def letters_tokenizer() -> ForeignTokenizer:
    """A word letter by letter."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    made = Tokenizer(models.WordLevel({token: number for number, token in enumerate(LETTERS)}, unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    special = {"start": "</s>", "end": "</s>", "unknown": "<unk>"}
    return ForeignTokenizer(json.loads(made.to_str()), special, len(LETTERS))


def phonemes_tokenizer() -> ForeignTokenizer:
    """Phonemes with blanks between them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({token: number for number, token in enumerate(PHONEMES)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"start": "<s>", "end": "</s>", "unknown": "<unk>"}
    return ForeignTokenizer(json.loads(made.to_str()), special, len(PHONEMES))
