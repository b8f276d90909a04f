"""GGUF files that are written: bit by bit what the run has, and the same tokens in llama.cpp where it is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from foreign_models import tiny_folder
from regard.core import registry
from regard.core.model import logits_of
from regard.data.tokenizer import train_tokenizer
from regard.errors import NumericError, RegardError, UsageError
from regard.interop import gguf_write
from regard.interop.export_run import Asked, export_run
from regard.run.run import Run
from regard.storage.tensors import weights_of
from regard.tasks.text import PlainText, TextProcessor
from regard.training.settings import TrainSettings

gguf = pytest.importorskip("gguf", reason="needs the gguf package")
TEXT = ["the cat sat on the mat", "a dog sang of the fox", "über die Brücke, 100 %"] * 3
LLAMA: dict[str, Any] = {"activation": "silu", "gated": True, "qk_norm": False}
SHAPES: dict[str, dict[str, Any]] = {
    "llama": LLAMA | {"n_heads": 4, "n_kv_heads": 2},
    "gpt2": {"norm": "layer", "position": "learned", "activation": "gelu_tanh", "qk_norm": False, "bias": True},
}


def made_run(kind: str, tokens: str = "bpe", **settings: Any) -> Run:
    size = 300 if tokens == "bpe" else None
    processor = TextProcessor(train_tokenizer(tokens, TEXT, vocab_size=size))
    model = registry.entry("gpt").config(processor.spec, "tiny", **SHAPES[kind] | settings).build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    config = {"model": {"name": "gpt", "size": "tiny", "settings": {}}, "data": {}, "train": TrainSettings().to_dict()}
    return Run(Path("run"), config, PlainText(), model, processor)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("tokens", ["bpe", "bytes"])
def test_a_file_comes_back_bit_by_bit_with_the_same_tokens(kind: str, tokens: str, tmp_path: Path) -> None:
    run = made_run(kind, tokens, tied=tokens == "bpe")
    found = export_run(run, tmp_path / "x.gguf")
    assert (found.to, found.architecture, found.difference) == ("gguf", kind, 0.0)
    again = regard.load(tmp_path / "x.gguf")
    own, other = weights_of(run.model), weights_of(again.model)
    assert own.keys() == other.keys()
    assert all(torch.equal(own[name], other[name]) for name in own)
    for text in ("the cat", "  <eos>\n\n 漢字 don't ", ""):
        plain = text.replace("<eos>", "")
        assert again.tokenizer.encode(plain).tolist() == run.tokenizer.encode(plain).tolist()
    named = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "x.gguf").tensors}
    table = own["embedding.token_to_vector.weight"].numpy()
    np.testing.assert_array_equal(np.array(named["token_embd.weight"].data).reshape(table.shape), table)


def test_half_of_the_digits_is_a_difference_that_is_told(tmp_path: Path) -> None:
    found = export_run(made_run("llama"), tmp_path / "x.gguf", asked=Asked(half=True))
    assert found.difference is not None
    assert 0 < found.difference < 1e-3


@pytest.mark.parametrize(
    ("value", "half", "told"),
    [(1e6, True, "--half: token_embd.weight has numbers above 65,504"), (float("nan"), False, "are not finite")],
)
def test_numbers_that_are_not_finite_are_refused_and_nothing_is_left(
    value: float, half: bool, told: str, tmp_path: Path
) -> None:
    run = made_run("llama")
    model: Any = run.model
    with torch.no_grad():
        model.embedding.token_to_vector.weight[3, 0] = value
    for place in ("x.gguf", "folder"):
        with pytest.raises(RegardError, match=told):
            export_run(run, tmp_path / place, "gguf", Asked(half=half))
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_stays_until_the_new_one_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.gguf").write_bytes(b"of yesterday")
    with monkeypatch.context() as changed:
        changed.setattr(gguf_write, "farthest", lambda *_: (_ for _ in ()).throw(NumericError("differs")))
        with pytest.raises(NumericError, match="differs"):
            export_run(made_run("llama"), tmp_path / "x.gguf", asked=Asked(force=True))
    assert [path.name for path in tmp_path.iterdir()] == ["x.gguf"]
    assert (tmp_path / "x.gguf").read_bytes() == b"of yesterday"
    export_run(made_run("llama"), tmp_path / "x.gguf", asked=Asked(force=True))
    assert (tmp_path / "x.gguf").read_bytes()[:4] == b"GGUF"


def imported(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Run:
    """A tiny Llama with a tokenizer of Llama 2's kind, to which something is done."""
    tiny_folder(folder, "llama", "sentence_piece")
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    change(content)
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return regard.load(folder, device="cpu")


def test_a_tokenizer_that_does_more_than_such_a_file_says_is_refused(tmp_path: Path) -> None:
    rewrites: dict[str, Callable[[dict[str, Any]], Any]] = {
        "rewrites text by Lowercase": lambda one: one["normalizer"]["normalizers"].insert(0, {"type": "Lowercase"}),
        "rewrites text by Replace": lambda one: one["normalizer"]["normalizers"][1].update(pattern={"String": "a"}),
        "cuts text by WhitespaceSplit": lambda one: one.update(pre_tokenizer={"type": "WhitespaceSplit"}),
        "with ignore_merges = True": lambda one: one["model"].update(ignore_merges=True),
    }
    for number, (told, change) in enumerate(rewrites.items()):
        run = imported(tmp_path / str(number), change)
        with pytest.raises(UsageError, match=told):
            export_run(run, tmp_path / "x.gguf")
    assert not (tmp_path / "x.gguf").exists()


def test_a_chat_goes_into_a_file_and_back(tmp_path: Path) -> None:
    folder, template = tmp_path / "chat", "{% for m in messages %}{{ m['content'] }}<0x00>{% endfor %}"
    imported(folder, lambda _: None)
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 3]}', encoding="utf-8")
    run = regard.load(folder, device="cpu")
    export_run(run, tmp_path / "x.gguf")
    again = regard.load(tmp_path / "x.gguf", device="cpu").tokenizer
    assert (again.chat, again.turn_id, again.eos_id, again.start_id) == (template, 3, 2, 1)
    assert again.unknown_id == run.tokenizer.unknown_id == 0
    for text in ("the cat", "  A1 ﬁ  don't"):
        assert again.encode(text).tolist() == run.tokenizer.encode(text).tolist()


def test_what_such_a_file_cannot_say_is_refused_by_name(tmp_path: Path) -> None:
    for run, told in (
        (made_run("llama", bias=True), "attention_bias = True: a GGUF file of llama says False"),
        (made_run("llama", window=4), "mistral: GGUF files are written of llama and gpt2 alone"),
        (made_run("gpt2", activation="gelu"), "activation_function = gelu"),
        (made_run("llama", "chars"), "WordLevel: GGUF files hold BPE"),
    ):
        with pytest.raises(UsageError, match=told):
            export_run(run, tmp_path / "x.gguf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", SHAPES)
def test_llama_cpp_has_the_same_tokens_and_chances(kind: str, tmp_path: Path) -> None:
    llama: Any = pytest.importorskip("llama_cpp", reason="needs llama-cpp-python")
    run = made_run(kind)
    export_run(run, tmp_path / "x.gguf")
    theirs = llama.Llama(model_path=str(tmp_path / "x.gguf"), n_ctx=64, logits_all=True, verbose=False)
    ids = [run.tokenizer.start_id, *run.tokenizer.encode("the cat sat on the mat").tolist()]
    assert theirs.tokenize(b"the cat sat on the mat", add_bos=True) == ids
    theirs.eval(ids)
    told = torch.tensor(np.array(theirs.scores[: len(ids)])).log_softmax(-1)
    with torch.no_grad():
        wanted = logits_of(run.model, torch.tensor([ids]))[0].log_softmax(-1)
    torch.testing.assert_close(told, wanted, rtol=0, atol=1e-3)
