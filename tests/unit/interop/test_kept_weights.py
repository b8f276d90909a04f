"""Weights that a run keeps in few bits: those made at every start, or those of the file, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.core.model import logits_of
from regard.errors import CheckpointError, UsageError
from regard.interop.export_run import export_run
from regard.interop.import_run import import_run
from regard.kernels import packed
from regard.layers.blocks import BlockEmbedding, BlockLinear
from regard.layers.int8 import Int8Linear
from regard.storage import tensors
from regard.storage.tensors import weights_of
from regard.training.run_folder import CONFIG, WEIGHTS

gguf: Any = pytest.importorskip("gguf")
quants: Any = pytest.importorskip("gguf.quants")

D, F, HEADS, GROUPS, K, V = 32, 64, 4, 2, 8, 40
SHAPES = {
    "attn_q": ((HEADS * K, D), "Q5_0"),
    "attn_k": ((GROUPS * K, D), "Q5_0"),
    "attn_v": ((GROUPS * K, D), "Q8_0"),
    "attn_output": ((D, HEADS * K), "Q4_0"),
    "ffn_gate": ((F, D), "Q4_0"),
    "ffn_up": ((F, D), None),
    "ffn_down": ((D, F), "Q8_0"),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a tiny Llama with blocks of several kinds."""
    path, chance = tmp_path_factory.mktemp("gguf") / "model.gguf", np.random.default_rng(0)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(D)
    writer.add_block_count(2)
    writer.add_feed_forward_length(F)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_key_length(K)
    words = ["<s>", "</s>", "<pad>", "<unk>", "▁", "a", "b", "▁a", "ab"]
    words += [f"word{number}" for number in range(V - len(words))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([-float(number) for number in range(V)])
    writer.add_token_types([3, 3, 3, 2] + [1] * (V - 4))
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_space_prefix(False)

    def put(name: str, shape: tuple[int, ...], kind: str | None) -> None:
        values = chance.normal(0, 0.3, shape).astype(np.float32)
        if kind is None:
            writer.add_tensor(name, values)
        else:
            known = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(name, quants.quantize(values, known), raw_dtype=known)

    put("token_embd.weight", (V, D), "Q8_0")
    put("output_norm.weight", (D,), None)
    for layer in range(2):
        for name, (shape, kind) in SHAPES.items():
            put(f"blk.{layer}.{name}.weight", shape, kind)
        put(f"blk.{layer}.attn_norm.weight", (D,), None)
        put(f"blk.{layer}.ffn_norm.weight", (D,), None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def runs(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("runs")
    for name in ("float32", "int8", "blocks"):
        import_run(file, where / name, weights=None if name == "float32" else name)
    return where


@torch.no_grad()
def test_blocks_are_the_numbers_of_the_file_and_say_the_same(runs: Path) -> None:
    wide, kept = (regard.load(runs / name, device="cpu") for name in ("float32", "blocks"))
    modules, maps = dict(wide.model.named_modules()), 0
    for name, part in kept.model.named_modules():
        if isinstance(part, (BlockLinear, BlockEmbedding)):
            own: Any = modules[name]
            assert torch.equal(part.weight, own.weight), name
            maps += 1
    assert maps == 1 + 2 * 4  # the table; heads, output, gate and down of two layers; up is in no blocks
    tokens = torch.randint(V, (2, 9))
    torch.testing.assert_close(logits_of(kept.model, tokens), logits_of(wide.model, tokens), rtol=1e-4, atol=1e-4)
    assert (runs / "blocks" / WEIGHTS).stat().st_size < 0.6 * (runs / "float32" / WEIGHTS).stat().st_size


@torch.no_grad()
def test_eight_bits_are_those_that_are_made_at_every_start(runs: Path) -> None:
    wide, kept = (regard.load(runs / name, device="cpu") for name in ("float32", "int8"))
    tokens = torch.randint(V, (2, 9))
    assert torch.equal(logits_of(kept.model, tokens), logits_of(wide.with_weights("int8").model, tokens))
    assert (runs / "int8" / WEIGHTS).stat().st_size < 0.5 * (runs / "float32" / WEIGHTS).stat().st_size


@pytest.mark.parametrize("name", ["int8", "blocks"])
def test_a_run_in_few_bits_is_used_like_any_other(
    name: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = regard.load(runs / name, device="cpu")
    plain = run.generate("a b", max_tokens=20, temperature=0.0)
    monkeypatch.setattr(packed, "LARGE", 0)
    assert run.generate("a b", max_tokens=20, temperature=0.0) == plain
    assert len(run.score("a ab").score.tokens) == 3
    assert run.explain("a ab a").to_dict()
    (tmp_path / "my.txt").write_text("a ab a\n" * 9, encoding="utf-8")
    assert run.evaluate(str(tmp_path / "my.txt")).scores["perplexity"] > 1
    copy = regard.load(run.save(tmp_path / "copy"), device="cpu")
    assert copy.generate("a b", max_tokens=20, temperature=0.0) == plain
    with pytest.raises(UsageError, match="has weights of few bits already"):
        run.with_weights("int8")
    (tmp_path / "my.tsv").write_text("text\tlabel\na\tx\nb\ty\n" * 9, encoding="utf-8")
    with pytest.raises(UsageError, match="kept in few bits, for use and not for training"):
        regard.train("classifier", tmp_path / "my.tsv", budget="1steps", out=tmp_path / "t", start=str(runs / name))


@pytest.mark.parametrize("name", ["int8", "blocks"])
@torch.no_grad()
def test_a_run_in_few_bits_goes_out_as_the_numbers_that_it_stands_for(name: str, runs: Path, tmp_path: Path) -> None:
    run = regard.load(runs / name, device="cpu")
    tokens = torch.randint(V, (2, 9))
    told = logits_of(run.model, tokens)  # used before, so that what is made on first use is there
    for place, to in (("hf", "hf"), ("one.gguf", None)):
        assert export_run(run, tmp_path / place, to).difference == 0.0
        again = regard.load(tmp_path / place, device="cpu")
        torch.testing.assert_close(logits_of(again.model, tokens), told, rtol=1e-3, atol=1e-3)
        if name == "blocks":
            table = weights_of(regard.load(runs / "float32", device="cpu").model)
            assert all(torch.equal(value, table[key]) for key, value in weights_of(again.model).items())
    export_run(run, tmp_path / "one.safetensors")
    wide = weights_of(regard.load(runs / "float32", device="cpu").model)
    assert tensors.forms_of(tensors.read(tmp_path / "one.safetensors")) == tensors.forms_of(wide)
    assert any(isinstance(part, (Int8Linear, BlockLinear)) for part in run.model.modules())


@pytest.mark.parametrize(("weights", "said"), [("int9", "did you mean 'int8'"), ("block", "did you mean 'blocks'")])
def test_unknown_weights_are_refused_and_nothing_is_left(weights: str, said: str, file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        import_run(file, tmp_path / "run", weights=weights)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"norm": "Q8_0"}, "no linear map 'norm'"),
        ({"stack.layers.0.mlp.hidden_to_output": "Q9_9"}, "blocks of 'Q9_9' are not known"),
        ({"stack.layers.0.mlp.hidden_to_output": "Q4_K"}, "rows of 64 numbers have no blocks of Q4_K"),
        ({"stack.layers.0.mlp.hidden_to_output": 3}, "model.weights.stack"),
        ("int4", "model.weights"),
    ],
)
def test_a_config_that_asks_for_other_weights_is_refused(weights: Any, said: str, runs: Path, tmp_path: Path) -> None:
    from regard.training.saved_config import checked_config
    from regard.training.saved_model import saved_model

    config = json.loads((runs / "blocks" / CONFIG).read_text(encoding="utf-8"))
    config["model"]["weights"] = weights
    with pytest.raises((UsageError, CheckpointError), match=said):
        saved_model(tmp_path, checked_config(config))


def test_loading_draws_nothing_and_what_is_written_to_weights_stays_out_of_the_file(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "LARGE", 0)
    file = runs / "float32" / WEIGHTS
    before, chance = hashlib.sha256(file.read_bytes()).hexdigest(), torch.get_rng_state()
    model: Any = regard.load(runs / "float32", device="cpu").model
    assert torch.equal(torch.get_rng_state(), chance)
    table = model.embedding.token_to_vector.weight
    assert table is model.head.weight
    with torch.no_grad():
        table.fill_(1.0)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
    again: Any = regard.load(runs / "float32", device="cpu").model
    assert not torch.equal(again.head.weight, table)
