"""A run as a folder that `transformers` loads with equal logits: the tables of the import, read backwards."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.data.tokenizer import Tokenizer
from regard.errors import NumericError, UsageError
from regard.interop.export_folder import told_of
from regard.interop.hf_folder import MODULES, POOLINGS
from regard.interop.hf_plan import Outgoing, outgoing
from regard.interop.hf_tokenizer_write import HfTokenizer, hf_tokenizer
from regard.interop.tensor_files import WEIGHTS, Weights, opened
from regard.interop.weight_table import Line, lines_of
from regard.models.sentence_encoder import SentenceEncoderConfig
from regard.storage.tensors import Form, Tensors, forms_of, streamed, weights_of
from regard.tasks.processor import Tokenizes

if TYPE_CHECKING:
    from regard.run.run import Run


@runtime_checkable
class TwoSides(Protocol):
    """A processor of a text that is read and one that is written."""

    source: Tokenizer
    target: Tokenizer


class OutgoingModel:
    """A run as a model of theirs. tensors by their names, made when they are asked for."""

    def __init__(self, run: Run) -> None:
        model: Any = run.model
        imported = run.config.get("imported", {})
        self.run, self.own = run, weights_of(model)
        self.length = model.max_length or run.config["train"]["length"]
        self.tokenizer = _tokenizer(run, self.length)
        with told_of(run.path):
            known = imported.get("architecture")
            found: Outgoing = outgoing(model.config, self.length, self.tokenizer.ids, known)
        self.kind, self.settings, self.plan = found.kind, found.settings, found.plan
        self._place: dict[str, tuple[Line, int]] = {}
        self.forms: dict[str, Form] = {}
        for line in lines_of(self.plan.table, self.plan.n_layers):
            shapes = line.form.theirs(torch.empty_like(self.own[line.ours], device="meta"))
            for number, (name, part) in enumerate(zip(line.theirs, shapes, strict=True)):
                self._place[name], self.forms[name] = (line, number), Form(tuple(part.shape), "F32")

    def __getitem__(self, name: str) -> Tensor:
        line, number = self._place[name]
        own = self.own[line.ours].detach().cpu().float()
        if not bool(own.isfinite().all()):
            raise NumericError(f"{self.run.path}: {line.ours}: has numbers that are not finite, and is not exported")
        return line.form.theirs(own)[number].contiguous()

    def files(self) -> Iterator[tuple[str, Any]]:
        """All files of the folder."""
        settings = self.settings | {"dtype": "float32"}
        yield "config.json", [(json.dumps(settings, indent=2) + "\n").encode()]
        yield WEIGHTS, streamed(self.forms, self, {"format": "pt"})
        for name, content in self.tokenizer.files().items():
            yield name, [content]
        config: Any = self.run.model.config
        if isinstance(config, SentenceEncoderConfig):
            yield from _modules(config)

    def largest_difference(self, folder: Path) -> float:
        """How far the weights that the import reads from a folder are from those of the run; 0 where they are equal."""
        with opened(folder) as files:
            return farthest(self.own, Weights(files, self.plan, forms_of(self.own), str(folder)))


def farthest(own: Mapping[str, Tensor], read: Tensors) -> float:
    """The largest difference between weights and what was read back of them; one that is not finite is refused."""
    found = 0.0
    for name, tensor in own.items():
        apart = (read[name] - tensor.detach().cpu().float()).abs()
        largest = float(apart.max()) if apart.numel() else 0.0
        if not math.isfinite(largest):
            raise NumericError(f"{name}: what was written is not what was read back, the difference is {largest}")
        found = max(found, largest)
    return found


def _tokenizer(run: Run, length: int) -> HfTokenizer:
    model: Any = run.model
    processor = run.processor
    with told_of(run.path):
        if isinstance(processor, TwoSides):
            if processor.source is not processor.target:
                raise UsageError("data.shared = false: a folder of transformers has one vocabulary for both sides")
            return hf_tokenizer(processor.target, framed=False, length=length, ends=True)
        if not isinstance(processor, Tokenizes):
            raise UsageError(f"a run of the task {run.task.name} has no folder of transformers; --to onnx takes it")
        return hf_tokenizer(processor.tokenizer, framed=not model.causal, length=length)


def _modules(config: SentenceEncoderConfig) -> Iterator[tuple[str, Any]]:
    """The files by which sentence-transformers pools."""
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")] + ([("Normalize", "2_Normalize")] * config.normalised)
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, path) in enumerate(kinds)
    ]
    word = next(word for word, form in POOLINGS.items() if form == config.pooling)
    pooling = {"word_embedding_dimension": config.embedding.d_model, "pooling_mode": word}
    for name, content in ((MODULES, listed), ("1_Pooling/config.json", pooling)):
        yield name, [(json.dumps(content, indent=2) + "\n").encode()]
