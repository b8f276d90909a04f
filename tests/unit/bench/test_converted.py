"""What CTranslate2 is given to convert: the model that is here, and words for its numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from regard.bench import converted


class Converter:
    """Asks as that of CTranslate2 does."""

    def __init__(self, path: str) -> None:
        self.path = path

    def load_model(self, kind: type, path: str, **_: Any) -> Any:
        pytest.fail(f"{kind} read from {path}")

    def load_tokenizer(self, kind: type, path: str, **_: Any) -> Any:
        pytest.fail(f"{kind} read from {path}")

    def convert(self, folder: str) -> str:
        assert (Path(self.path) / "config.json").exists()
        tokenizer = self.load_tokenizer(object, self.path)
        words = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        model = self.load_model(object, self.path, dtype=None)
        assert len(words) == model.config.vocab_size
        assert tokenizer.convert_ids_to_tokens(7) == words[7][0]
        assert {tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token} <= {word for word, _ in words}
        return folder


def test_a_model_is_converted_from_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    converters = ModuleType("ctranslate2.converters")
    vars(converters)["TransformersConverter"] = Converter
    monkeypatch.setitem(sys.modules, "ctranslate2", ModuleType("ctranslate2"))
    monkeypatch.setitem(sys.modules, "ctranslate2.converters", converters)

    def save(folder: Path) -> None:
        folder.mkdir()
        (folder / "config.json").write_text("{}")

    config = SimpleNamespace(vocab_size=12, save_pretrained=save)
    model = SimpleNamespace(config=config, eval=lambda: model)
    assert converted._converted(model, tmp_path / "m") == str(tmp_path / "m" / "converted")


def test_without_the_peer_there_is_no_row(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(converted, "installed", lambda package: package != "ctranslate2")
    assert converted.ctranslate2(1, torch.device("cpu")) == []
