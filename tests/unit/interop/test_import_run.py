"""Models of other people: folders as runs, read tensor by tensor, and what is wrong with one told in a line."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from foreign_models import tiny_folder
from regard.core.model import Embeds, logits_of
from regard.errors import CheckpointError, ResourceError, UsageError
from regard.interop.tensor_files import Weights
from regard.serving.provider import RunProvider
from regard.storage import disk
from regard.training import run_folder

WEIGHTS = "model.safetensors"
LLAMA = ("llama", "sentence_piece")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of each kind, not to be written in."""
    torch.manual_seed(0)
    whole = tmp_path_factory.mktemp("hub")
    for name, kind in (LLAMA, ("gpt2", "byte_level"), ("bert", "word_piece"), ("roberta", "byte_level")):
        tiny_folder(whole / name, name, kind)
    sentences = whole / "sentences"
    tiny_folder(sentences, "bert", "word_piece")
    bare = {
        name.removeprefix("bert."): value for name, value in load_file(sentences / WEIGHTS).items() if "bert" in name
    }
    save_file(bare, sentences / WEIGHTS)
    modules = [{"type": f"sentence_transformers.models.{name}", "path": path} for name, path in PARTS.items()]
    (sentences / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (sentences / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (sentences / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    return whole


PARTS = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_an_imported_language_model_is_a_run_like_any_other(name: str, folders: Path, tmp_path: Path) -> None:
    found = regard.import_run(folders / name, tmp_path / "run")
    run, direct = regard.load(tmp_path / "run", device="cpu"), regard.load(folders / name, device="cpu")
    tokens = torch.randint(run.tokenizer.vocab_size, (2, 9))
    assert torch.equal(logits_of(run.model, tokens), logits_of(direct.model, tokens))
    assert found.parameters == sum(parameter.numel() for parameter in run.model.parameters())
    assert run.config["imported"] == {"source": str(folders / name), "architecture": name}
    assert run.generate("the cat", max_tokens=4, temperature=0.0).startswith("the cat")
    assert len(run.score("the cat sat").score.tokens) == len(run.tokenizer.encode("the cat sat"))
    assert run.encode("the cat").shape[1] == 16
    (tmp_path / "my.txt").write_text("the cat sat on the mat\n" * 5, encoding="utf-8")
    assert run.evaluate(str(tmp_path / "my.txt")).scores["bits_per_byte"] > 0
    page = RunProvider(lambda: {"run": tmp_path / "run"}, "cpu")
    assert page.view("run", None, "the cat sat", {}).name == next(iter(page.offer("run")["views"])) == "attention"
    assert run.explain("the cat sat").to_dict()
    assert run_folder.verify_run(tmp_path / "run").keys() == {WEIGHTS, "config.json", "tokenizer.json"}


def test_a_text_begins_with_the_start_that_the_folder_says(folders: Path) -> None:
    run = regard.load(folders / "llama", device="cpu")
    assert run.writer.prompt_ids("the cat").tolist()[0] == run.tokenizer.start_id != run.tokenizer.eos_id
    masked = regard.load(folders / "bert", device="cpu")
    ids = masked.task.ids(masked.processor, "the [MASK] sat")
    assert ids is not None
    names = [masked.tokenizer.token_text(int(token)) for token in ids]
    assert (names[0], names[-1], names.count("[MASK]")) == ("[CLS]", "[SEP]", 1)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_an_imported_masked_model_fills_in_and_is_started_from(name: str, folders: Path, tmp_path: Path) -> None:
    regard.import_run(folders / name, tmp_path / "run")
    run = regard.load(tmp_path / "run", device="cpu")
    answer = run.answers(["the [MASK] sat"])[0]
    assert len(answer.details["masks"]) == 1
    assert answer.text.startswith("the")
    (tmp_path / "my.txt").write_text("the cat sat on the mat\na dog sang\n" * 5, encoding="utf-8")
    assert run.evaluate(str(tmp_path / "my.txt")).scores["hidden_tokens"] > 0
    rows = "".join(f"the {thing} sat {i}\t{thing}\n" for thing in ("cat", "dog") for i in range(20))
    (tmp_path / "my.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    start = {"start": str(tmp_path / "run"), "device": "cpu", "quiet": True}
    tuned = regard.train("classifier", tmp_path / "my.tsv", budget="1steps", out=tmp_path / "tuned", **start)
    assert tuned.generate("the cat sat") in ("cat", "dog")
    assert tuned.tokenizer.hash == run.tokenizer.hash


def test_a_model_without_a_head_gives_vectors(folders: Path, tmp_path: Path) -> None:
    regard.import_run(folders / "sentences", tmp_path / "run")
    run = regard.load(tmp_path / "run", device="cpu")
    texts = ["the cat sat", "a dog", "the cat sat"]
    vectors = torch.from_numpy(run.embed(texts))
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    assert torch.equal(vectors[0], vectors[2])
    assert isinstance(run.model, Embeds)
    first = run.model.encode(torch.from_numpy(run.task.ids(run.processor, "a dog"))[None])[0, 0]  # pyright: ignore
    torch.testing.assert_close(vectors[1], first / first.norm())
    assert set(run.views) == {
        "attention",
        "heads",
        "induction",
        "rollout",
        "neurons",
        "meaning",
        "steps",
        "grid",
        "flow",
    }
    for view in run.views:
        assert run.explain("the cat sat on the cat", view=view).to_dict()
    with pytest.raises(UsageError, match="has no fill to show"):
        run.explain("the [MASK]", view="fill")
    with pytest.raises(UsageError, match="fills in no masks"):
        run.evaluate("world:stories", limit=2)


def test_parts_of_a_sharded_model_are_one_model(folders: Path, tmp_path: Path) -> None:
    folder = copied(folders / "llama", tmp_path)
    split(folder)
    whole, parts = regard.load(folders / "llama", device="cpu"), regard.load(folder, device="cpu")
    tokens = torch.randint(20, (1, 5))
    assert torch.equal(logits_of(whole.model, tokens), logits_of(parts.model, tokens))


def test_half_precision_is_read_as_it_is(folders: Path, tmp_path: Path) -> None:
    folder = copied(folders / "llama", tmp_path)
    rewrite(folder, lambda tensors: {name: value.to(torch.bfloat16) for name, value in tensors.items()})
    regard.import_run(folder, tmp_path / "run")
    weights = load_file(tmp_path / "run" / WEIGHTS)
    assert {value.dtype for value in weights.values()} == {torch.float32}
    table = load_file(folder / WEIGHTS)["model.embed_tokens.weight"]
    assert torch.equal(weights["embedding.token_to_vector.weight"], table.float())


def test_a_list_of_words_is_made_a_tokenizer_by_transformers(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(folders / "bert", tmp_path)
    expected = regard.load(folder, device="cpu").tokenizer
    vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    found = regard.load(folder, device="cpu").tokenizer
    text = "The cat, über [MASK]!"
    assert found.encode(text).tolist() == expected.encode(text).tolist()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CheckpointError, match=r"vocab.txt: .* pip install transformers"):
        regard.load(folder, device="cpu")


def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def split(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    places = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(tensors)}
    for part in set(places.values()):
        save_file({name: value for name, value in tensors.items() if places[name] == part}, folder / part)
    (folder / WEIGHTS).unlink()
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")


def rewrite(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]], name: str = WEIGHTS) -> None:
    if name == WEIGHTS:
        save_file(change(load_file(folder / name)), folder / name)
    else:
        content = change(json.loads((folder / name).read_text(encoding="utf-8")))
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder, lambda content: content | changes, "config.json")


def weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder, change)


def as_pickle(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")


def beside_an_index(folder: Path) -> None:
    (folder / f"{WEIGHTS}.index.json").write_text("{}", encoding="utf-8")


def with_a_wrong_index(folder: Path) -> None:
    split(folder)
    rewrite(folder, lambda content: {"weight_map": content["weight_map"] | {"more": "part-0.safetensors"}}, INDEX)


def with_an_index_that_leads_out(folder: Path) -> None:
    split(folder)
    rewrite(folder, lambda content: {"weight_map": dict.fromkeys(content["weight_map"], "../x.safetensors")}, INDEX)


INDEX = f"{WEIGHTS}.index.json"
Q = "model.layers.0.self_attn.q_proj.weight"
WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pickle": (as_pickle, "pytorch_model.bin: is a pickle"),
    "hostile header": (
        lambda folder: (folder / WEIGHTS).write_bytes(b"\xff" * 64),
        f"{WEIGHTS}: not a readable safetensors file",
    ),
    "cut short": (
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-9]),
        "not a readable safetensors file",
    ),
    "missing": (weights(lambda t: {n: v for n, v in t.items() if n != Q}), rf"{WEIGHTS}: {Q}: missing"),
    "extra": (weights(lambda t: t | {"adapter.weight": torch.zeros(2)}), "adapter.weight: not known"),
    "shape": (weights(lambda t: t | {"model.norm.weight": torch.zeros(3)}), r"model.norm.weight: gives \[3\]"),
    "rows": (weights(lambda t: t | {Q: torch.zeros(7, 16)}), f"{Q}: F32.*has 7 rows, expected 16"),
    "integers": (weights(lambda t: t | {Q: torch.zeros(16, 16, dtype=torch.int8)}), f"{Q}: has numbers of type I8"),
    "both": (beside_an_index, "remove one of them"),
    "index": (with_a_wrong_index, "weight_map: more: the index and the files disagree"),
    "leads out": (with_an_index_that_leads_out, "weight_map: names the file"),
    "unknown key": (config(new_gate=True), "config.json: new_gate: is not known"),
    "known elsewhere": (config(attention_biases=True), "did you mean 'attention_bias'?"),
    "architecture": (config(model_type="lama"), "model_type: 'lama' is not known, did you mean 'llama'?"),
    "remote code": (config(auto_map={"AutoModel": "x.Y"}), "auto_map: the model is code"),
    "quantised": (config(quantization_config={}), "quantization_config: quantised"),
    "heads": (config(num_key_value_heads=3), "n_kv_heads 3 does not divide"),
    "a word": (config(hidden_size="wide"), "hidden_size: expected int"),
    "enormous": (config(num_hidden_layers=10**9), "num_hidden_layers"),
    "activation": (config(hidden_act="mish"), "hidden_act: 'mish' is not supported"),
    "scaling": (
        config(rope_parameters={"rope_type": "yarn", "rope_theta": 1e4}),
        "rope_parameters: rope_type: 'yarn' is not supported",
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
    "no special": (
        lambda folder: (folder / "tokenizer_config.json").write_text('{"bos_token": "<none>"}'),
        "there is no token '<none>'",
    ),
    "tokens": (config(vocab_size=5), "asks for"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_a_line_and_nothing_is_left(what: str, folders: Path, tmp_path: Path) -> None:
    folder, (spoil, told) = copied(folders / "llama", tmp_path), WRONG[what]
    spoil(folder)
    with pytest.raises(CheckpointError, match=told) as caught:
        regard.import_run(folder, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_tied_weights_that_differ_are_refused(folders: Path, tmp_path: Path) -> None:
    folder = copied(folders / "gpt2", tmp_path)
    table = "transformer.wte.weight"
    rewrite(folder, lambda tensors: tensors | {"lm_head.weight": tensors[table].clone()})
    assert regard.load(folder, device="cpu").model.config.tied  # pyright: ignore[reportAttributeAccessIssue]
    rewrite(folder, lambda tensors: tensors | {"lm_head.weight": tensors[table] + 1})
    with pytest.raises(CheckpointError, match=rf"lm_head.weight: differs from {table}"):
        regard.load(folder, device="cpu")


def test_an_import_that_fails_leaves_nothing(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise ResourceError("no space left")

    monkeypatch.setattr(disk, "require_space", full)
    with pytest.raises(ResourceError):
        regard.import_run(folders / "gpt2", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_is_never_overwritten(folders: Path, tmp_path: Path) -> None:
    regard.import_run(folders / "gpt2", tmp_path / "run")
    with pytest.raises(UsageError, match="already holds a run"):
        regard.import_run(folders / "llama", tmp_path / "run")
    with pytest.raises(UsageError, match="was imported and never trained here"):
        regard.train("gpt", "world:stories", like=tmp_path / "run", out=tmp_path / "like")
    with pytest.raises(CheckpointError, match="no such folder"):
        regard.import_run(tmp_path / "nowhere", tmp_path / "other")


def test_every_tensor_is_read_once(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = Weights.__getitem__

    def watched(self: Weights, name: str) -> torch.Tensor:
        read.append(name)
        return original(self, name)

    monkeypatch.setattr(Weights, "__getitem__", watched)
    regard.import_run(folders / "llama", tmp_path / "run")
    assert sorted(read) == sorted(load_file(tmp_path / "run" / WEIGHTS))


def test_a_model_of_the_hub_keeps_its_revision(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = {}

    def downloaded(name: str, revision: str | None = None, **_: object) -> str:
        asked[name] = revision
        return str(folders / "gpt2")

    monkeypatch.setattr(hub, "snapshot_download", downloaded)
    regard.import_run("hf:owner/tiny@main", tmp_path / "run")
    assert asked == {"owner/tiny": "main"}
    told = regard.load(tmp_path / "run", device="cpu").config["imported"]
    assert told == {"source": "hf:owner/tiny@main", "architecture": "gpt2", "revision": "gpt2"}


@pytest.mark.parametrize("number", [-1, 1 << 32, 1 << 70])
def test_ids_that_no_token_can_have_name_none(number: int, folders: Path, tmp_path: Path) -> None:
    folder = copied(folders / "llama", tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, number]}), encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": number}), encoding="utf-8")
    tokenizer = regard.load(folder, device="cpu").tokenizer
    assert (tokenizer.eos_id, tokenizer.turn_id) == (2, 2)
