"""A run as a GGUF file for llama.cpp: those that are built as Llama or as GPT-2, in float32 or float16."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.errors import NumericError, UsageError
from regard.interop.export_folder import told_of
from regard.interop.gguf_bytes import gguf_chunks
from regard.interop.gguf_gpt2 import GPT2
from regard.interop.gguf_model import BOTH, KEYS, NAMES, WHOLE
from regard.interop.gguf_tokenizer_write import tokenizer_facts
from regard.interop.hf_write import OutgoingModel, farthest
from regard.interop.weight_table import Turned
from regard.storage.tensors import Form, weights_of

if TYPE_CHECKING:
    from regard.run.run import Run

# Settings of transformers that such a file has no key for, by what it takes for said.
IMPLIED = {
    "llama": {"hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "rope_scaling": None},
    "gpt2": {"activation_function": "gelu_new"},
}
PROBES = ("the cat sat", "  two  spaces ", "über 漢字\t\n\n don't", "a\r\nb", "A1 B２ ﬁ", "")


class OutgoingGguf:
    """A run as such a file. forms: of its tensors by their names."""

    def __init__(self, run: Run, *, half: bool, licence: str | None) -> None:
        _require_gguf()
        self.model = OutgoingModel(run)
        self.run, self.kind, self.half = run, self.model.kind, half
        settings = self.model.settings
        with told_of(run.path):
            if self.kind not in IMPLIED:
                raise UsageError(f"{self.kind}: GGUF files are written of {' and '.join(IMPLIED)} alone; --to hf")
            for key, value in IMPLIED[self.kind].items():
                if settings.get(key) != value:
                    raise UsageError(f"{key} = {settings.get(key)}: a GGUF file of {self.kind} says {value}")
            tokens = tokenizer_facts(self.model.tokenizer, settings["vocab_size"])
        self._theirs = self._names()
        self.forms = {name: self._shaped(name) for name in self._theirs}
        known = {"general.architecture": self.kind, "general.name": run.path.name or "model"}
        known |= {} if licence is None else {"general.license": licence}
        self.facts = known | {"general.file_type": 1 if half else 0} | self._keys() | tokens

    def __getitem__(self, name: str) -> Tensor:
        return self._changed(name, self.model[self._theirs[name]])

    def chunks(self) -> Iterator[bytes]:
        return gguf_chunks(self.facts, self.forms, self, half=self.half)

    def largest_difference(self, path: Path) -> float:
        """How far the weights that the import reads from the file are from the run's; its tokens must be the same."""
        from regard.interop.hf_folder import opened_file

        with opened_file(path) as read:
            for text in PROBES:
                if read.tokenizer.encode(text).tolist() != self.run.tokenizer.encode(text).tolist():
                    raise NumericError(f"{path.name}: {text!r} has other tokens than in the run")
            return farthest(weights_of(self.run.model), read.weights)

    def _names(self) -> dict[str, str]:
        """Their names in the file, and those of transformers."""
        if self.kind == "gpt2":
            return {GPT2.short(name): name for name in self.model.forms}
        layers = {theirs: short for short, theirs in (BOTH | NAMES["llama"]).items()}
        whole = {theirs: short for short, theirs in WHOLE.items()}
        found = {}
        for name in self.model.forms:
            plain, _, ending = name.rpartition(".")
            if plain in whole:
                found[f"{whole[plain]}.{ending}"] = name
                continue
            number, _, part = plain.removeprefix("model.layers.").partition(".")
            found[f"blk.{number}.{layers[part]}.{ending}"] = name
        return found

    def _changed(self, name: str, tensor: Tensor) -> Tensor:
        """A tensor of transformers as llama.cpp keeps it."""
        if self.kind == "gpt2":
            return GPT2.changed(name, tensor)
        width = self.model.settings["head_dim"]
        return Turned(width, width).ours([tensor]) if ".attn_q." in name or ".attn_k." in name else tensor

    def _shaped(self, name: str) -> Form:
        form = self.model.forms[self._theirs[name]]
        return Form(tuple(self._changed(name, torch.empty(form.shape, device="meta")).shape), form.dtype)

    def _keys(self) -> dict[str, Any]:
        keys = GPT2.keys if self.kind == "gpt2" else KEYS
        settings = self.model.settings
        found = {f"{self.kind}.{key}": settings[name] for key, name in keys.items() if name in settings}
        if self.kind == "llama":
            width = settings["head_dim"]
            found |= {f"llama.{key}": width for key in ("attention.value_length", "rope.dimension_count")}
            found["llama.vocab_size"] = settings["vocab_size"]
        return {key: float(value) if key.endswith(("epsilon", "base")) else value for key, value in found.items()}


def _require_gguf() -> None:
    try:
        importlib.import_module("gguf")
    except ImportError:
        raise UsageError("--to gguf reads back what it writes, and needs gguf: pip install 'regard[export]'") from None
