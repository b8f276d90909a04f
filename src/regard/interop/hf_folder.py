"""Folders of Hugging Face: a model as `transformers` or `sentence-transformers` saves it.

    config.json                    what it is
    model.safetensors              its weights, or parts of them that model.safetensors.index.json lists
    tokenizer.json                 how it reads text, with tokenizer_config.json
    modules.json, 1_Pooling/       of sentence-transformers: how the vectors of a text become one

Everything is checked before anything is made; no code of a folder is ever run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.core.registry import entry
from regard.data.tokenizer import Tokenizer
from regard.errors import CheckpointError, RegardError, blamed_on
from regard.interop.architecture import Plan
from regard.interop.architectures import ARCHITECTURES, plan_of
from regard.interop.config_keys import Keys
from regard.interop.hf_tokenizer import pair_tokenizers, tokenizer_of
from regard.interop.tensor_files import Weights, opened
from regard.models.sentence_encoder import SentenceEncoderConfig
from regard.storage import manifest
from regard.storage.tensors import Form, forms_of, weights_metadata, weights_of
from regard.training.estimate import on_meta

CONFIG, MODULES, SENTENCES = "config.json", "modules.json", "sentence_bert_config.json"
POOLINGS = {"cls": "first", "mean": "mean", "max": "max", "lasttoken": "last"}
# Names of poolings in the files of sentence-transformers until 5.
FLAGS = {"cls_token": "first", "mean_tokens": "mean", "max_tokens": "max", "lasttoken": "last"}
UNSUPPORTED_FLAGS = ("mean_sqrt_len_tokens", "weightedmean_tokens")
LONGEST = 4096  # tokens that are read at a time, however many a model could


@dataclass(frozen=True, eq=False)
class ForeignModel:
    """A model of a folder, ready to be taken over.

    path       its folder.
    kind       its architecture.
    shapes     of our weights, which `weights` gives by name. metadata: what their file says.
    length     tokens that are read at a time.
    source     the tokenizer of what is read, where another text is written.
    """

    path: Path
    kind: str
    plan: Plan
    tokenizer: Tokenizer
    weights: Weights
    shapes: dict[str, Form]
    metadata: dict[str, str]
    length: int
    source: Tokenizer | None = None


def is_hf_folder(path: Path) -> bool:
    """Whether a folder is no run of regard and has a config.json that names an architecture."""
    if not (path / CONFIG).is_file() or (path / manifest.NAME).exists():
        return False
    try:
        content = manifest.read_json(path / CONFIG)
    except RegardError:
        return False
    return isinstance(content, dict) and "model_type" in content


@contextmanager
def opened_folder(path: Path) -> Iterator[ForeignModel]:
    """The model of a folder, while its files are open."""
    file = path / CONFIG
    if not file.exists():
        raise CheckpointError(f"{path}: no folder with a {CONFIG} and safetensors")
    config = manifest.read_json(file)
    with opened(path) as files:
        plan = plan_of(config, str(file), files.forms)
        plan, length = _with_modules(path, plan)
        with blamed_on(file):
            model: Any = on_meta(plan.config)
        shapes = forms_of(weights_of(model))
        weights = Weights(files, plan, shapes, str(file))
        kind, source = config["model_type"], None
        if ARCHITECTURES[kind].has_encoder:
            source, tokenizer = pair_tokenizers(path, config, model.vocab_size)
        else:
            tokenizer = tokenizer_of(path, config, model.vocab_size, framed=not model.causal)
        yield ForeignModel(path, kind, plan, tokenizer, weights, shapes, weights_metadata(model), length, source)


@contextmanager
def opened_file(path: Path) -> Iterator[ForeignModel]:
    """The model of a GGUF file, while it is open."""
    from regard.interop import gguf_model, gguf_tokenizer
    from regard.interop.gguf_file import opened_gguf

    with opened_gguf(path) as file:
        with blamed_on(path):
            config = gguf_model.config_of(file)
            tensors = gguf_model.tensors_of(file, config)
        plan = plan_of(config, str(path), tensors.forms)
        with blamed_on(path):
            model: Any = on_meta(plan.config)
        shapes = forms_of(weights_of(model))
        weights = Weights(tensors, plan, shapes, str(path))
        tokenizer = gguf_tokenizer.tokenizer_of(file, model.vocab_size)
        kind, metadata = config["model_type"], weights_metadata(model)
        yield ForeignModel(path, kind, plan, tokenizer, weights, shapes, metadata, min(plan.length, LONGEST))


def opened_source(path: Path) -> AbstractContextManager[ForeignModel]:
    """The model of a folder or of a file."""
    from regard.data.word_vectors import has_vectors
    from regard.interop.g2p_file import is_npz, opened_g2p
    from regard.interop.vector_file import opened_vectors

    if is_npz(path):
        return opened_g2p(path)
    if has_vectors(path):
        return opened_vectors(path)
    return opened_file(path) if is_gguf(path) else opened_folder(path)


def is_gguf(path: Path) -> bool:
    """Whether a file is called as GGUF files are."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def task_name(model: ForeignModel) -> str:
    """What such a model is for."""
    return entry(model.plan.model).task


def _with_modules(path: Path, plan: Plan) -> tuple[Plan, int]:
    """The plan with the pooling of sentence-transformers, and how many tokens are read at a time."""
    length = min(plan.length, LONGEST)
    if not (path / MODULES).exists() or not isinstance(plan.config, SentenceEncoderConfig):
        return plan, length
    modules = manifest.read_json(path / MODULES)
    if not isinstance(modules, list):
        raise CheckpointError(f"{path / MODULES}: expected a list, found {type(modules).__name__}")
    changes: dict[str, Any] = {}
    for number, module in enumerate(modules):
        keys = Keys(module, f"{path / MODULES}: {number}")
        kind = keys.take("type", str).rpartition(".")[2]
        if kind == "Pooling":
            changes["pooling"] = _pooling(path / keys.take("path", str) / CONFIG, path)
        elif kind == "Normalize":
            changes["normalised"] = True
        elif kind != "Transformer" or keys.take("path", str, ""):
            raise keys.refused("type", f"{kind[:60]!r} is not supported; Transformer, Pooling and Normalize are")
    if (path / SENTENCES).exists():
        keys = Keys(manifest.read_json(path / SENTENCES), str(path / SENTENCES))
        length = min(length, keys.count("max_seq_length", None) or length)
        keys.only("do_lower_case", False)
    return replace(plan, config=plan.config.replace(**changes)), length


def _pooling(file: Path, folder: Path) -> str:
    if folder.resolve() not in file.resolve().parents:
        raise CheckpointError(f"{folder / MODULES}: path: leads out of the folder")
    keys = Keys(manifest.read_json(file), str(file))
    mode = keys.content.get("pooling_mode")
    if mode is not None:
        found = [keys.choice("pooling_mode", POOLINGS)]
    else:
        keys.mark(["pooling_mode"])
        found = [form for name, form in FLAGS.items() if keys.take(f"pooling_mode_{name}", bool, False)]
    for name in UNSUPPORTED_FLAGS:
        keys.only(f"pooling_mode_{name}", False)
    keys.only("include_prompt", True)
    keys.mark(["word_embedding_dimension", "embedding_dimension"])
    keys.done()
    if len(found) != 1:
        raise keys.refused("pooling_mode", f"one way of pooling is supported, found {len(found)}")
    return found[0]
