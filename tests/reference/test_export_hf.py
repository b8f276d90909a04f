"""What is exported to Hugging Face has the same logits and tokens in transformers, and comes back bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

import regard
from regard.core import registry
from regard.core.inputs import SourceTokens
from regard.core.model import logits_of
from regard.data.tokenizer import train_tokenizer
from regard.errors import UsageError
from regard.interop.export_run import Asked, export_run
from regard.run.run import Run
from regard.storage.tensors import weights_of
from regard.tasks import task_named
from regard.tasks.masked import MaskedProcessor
from regard.tasks.pairs import PairProcessor
from regard.tasks.text import TextProcessor
from regard.training.settings import TrainSettings

hf: Any = pytest.importorskip("transformers")
from foreign_models import BOTH_WAYS, CAUSAL, TEXT, exact_places, tiny_folder  # noqa: E402
from piece_models import translator_folder  # noqa: E402

WORDS = train_tokenizer("words", TEXT)
SMALL = {"d_model": 16, "n_layers": 2, "n_heads": 2}
SILU = {"activation": "silu", "gated": True}
PUBLISHED = {"size": "paper", **SMALL}
# What goes out as what, in which of transformers' classes it is loaded, and how near logits are.
OUT: dict[str, tuple[dict[str, Any], str, float]] = {
    "gpt2": ({"name": "gpt", **PUBLISHED, "max_length": 40}, "text", 1e-10),
    "llama": ({"name": "gpt", "size": "tiny", **SILU, "qk_norm": False, "n_kv_heads": 1}, "text", 1e-5),
    "mistral": ({"name": "gpt", "size": "tiny", **SILU, "qk_norm": False, "window": 3}, "text", 1e-5),
    "qwen3": ({"name": "gpt", "size": "tiny", **SILU}, "text", 1e-5),
    "mamba": ({"name": "mamba", "size": "tiny"}, "text", 1e-5),
    "mamba2": ({"name": "mamba2", "size": "tiny"}, "text", 1e-5),
    "bert": ({"name": "bert", **PUBLISHED, "max_length": 40}, "masked", 1e-10),
    "marian": ({"name": "transformer", **PUBLISHED}, "pairs", 1e-10),
}
PROCESSORS = {"text": TextProcessor, "masked": MaskedProcessor, "pairs": lambda one: PairProcessor(one, one)}
CLASSES = {"text": hf.AutoModelForCausalLM, "masked": hf.AutoModelForMaskedLM, "pairs": hf.AutoModelForSeq2SeqLM}


def made_run(path: Path, task: str, name: str, size: str = "tiny", **settings: Any) -> Run:
    """A run of random weights, none of them 0 or 1."""
    torch.manual_seed(3)
    processor = PROCESSORS[task](WORDS)
    config = registry.entry(name).config(processor.spec, size, **settings)
    model = config.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    about = {"model": {"name": name, "size": size, "settings": settings}, "data": {"task": task, "tokens": "words"}}
    return Run(path, about | {"train": TrainSettings().to_dict()}, task_named(task), model, processor)


@pytest.mark.parametrize("kind", OUT)
def test_transformers_loads_what_is_exported_with_the_same_logits(kind: str, tmp_path: Path) -> None:
    settings, task, tolerance = OUT[kind]
    run = made_run(tmp_path / "run", task, **settings)
    found = export_run(run, tmp_path / "out", "hf")
    assert (found.architecture, found.difference) == (kind, 0.0)
    theirs = CLASSES[task].from_pretrained(tmp_path / "out").double().eval()
    ours: Any = run.model.double()
    tokens = torch.randint(len(WORDS.words), (3, 9))
    with torch.no_grad():
        if task == "pairs":
            exact_places(theirs)
            source = torch.randint(len(WORDS.words), (3, 7))
            wanted = theirs(input_ids=source, decoder_input_ids=tokens).logits
            told = logits_of(ours, SourceTokens(source, tokens))
        else:
            wanted, told = theirs(tokens).logits, logits_of(ours, tokens)
    torch.testing.assert_close(told, wanted, rtol=tolerance, atol=tolerance, check_dtype=False)


@pytest.mark.parametrize("name", [*CAUSAL, *BOTH_WAYS])
def test_what_came_in_goes_out_again_bit_by_bit(name: str, tmp_path: Path) -> None:
    theirs = tiny_folder(tmp_path / "in", name, "byte_level" if name in CAUSAL else "word_piece")
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    theirs.save_pretrained(tmp_path / "in")
    run = regard.load(tmp_path / "in")
    found = export_run(run, tmp_path / "out", "hf")
    assert found.architecture == theirs.config.model_type
    again = regard.load(tmp_path / "out")
    # Norms of Gemma are kept as their distance from 1, which rounds.
    own, other = weights_of(run.model), weights_of(again.model)
    assert all(torch.equal(own[key], other[key]) for key in own) == (found.difference == 0.0)
    assert found.difference == 0.0 or name == "gemma-3"
    assert found.difference is not None
    assert found.difference < 1e-6
    before, after = (load_file(tmp_path / place / "model.safetensors") for place in ("in", "out"))
    if name in CAUSAL and name != "gemma-3":
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) for key in before)
    loader = hf.AutoModelForCausalLM if name in CAUSAL else hf.AutoModelForMaskedLM
    loaded = loader.from_pretrained(tmp_path / "out").eval()
    tokens = torch.randint(5, 25, (2, 8))  # none of them special
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens).logits, theirs(tokens).logits, rtol=1e-5, atol=1e-5)
    text = "the cat <mask> über\n"
    ids = Tokenizer.from_file(str(tmp_path / "in" / "tokenizer.json")).encode(text, add_special_tokens=False).ids
    assert hf.AutoTokenizer.from_pretrained(tmp_path / "out")(text, add_special_tokens=False)["input_ids"] == ids


@pytest.mark.parametrize("name", ["bart", "t5", "t5-gated"])
def test_what_reads_one_text_and_writes_another_goes_out_again(name: str, tmp_path: Path) -> None:
    theirs = translator_folder(tmp_path / "in", name)
    if name == "bart":
        with torch.no_grad():
            theirs.final_logits_bias.normal_()
        theirs.save_pretrained(tmp_path / "in")
    regard.import_run(tmp_path / "in", tmp_path / "run")
    run = regard.load(tmp_path / "run", device="cpu")
    found = export_run(run, tmp_path / "out", "hf")
    assert (found.architecture, found.difference) == (theirs.config.model_type, 0.0)
    loaded = hf.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
    for key in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        assert getattr(loaded.config, key) == getattr(theirs.config, key), key
    source, tokens = torch.randint(5, 25, (2, 8)), torch.randint(5, 25, (2, 6))
    with torch.no_grad():
        told, wanted = (one(input_ids=source, decoder_input_ids=tokens).logits for one in (loaded, theirs))
    torch.testing.assert_close(told, wanted, rtol=1e-5, atol=1e-5)
    ids = Tokenizer.from_file(str(tmp_path / "in" / "tokenizer.json")).encode("the cat sat").ids
    assert hf.AutoTokenizer.from_pretrained(tmp_path / "out")("the cat sat")["input_ids"] == ids
    again: Any = regard.load(tmp_path / "out", device="cpu")
    assert again.answers(["the cat"], max_tokens=8)[0].text == run.answers(["the cat"], max_tokens=8)[0].text
    assert again.processor.target.special == run.processor.target.special  # pyright: ignore[reportAttributeAccessIssue]


def test_a_chat_goes_out_with_its_template_and_both_ends(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="templates of conversations need jinja2")
    tiny_folder(tmp_path / "in", "llama", "byte_level")
    template = "{% for m in messages %}{{ bos_token }}{{ m['content'] }}<mask>{% endfor %}"
    (tmp_path / "in" / "chat_template.jinja").write_text(template, encoding="utf-8")
    (tmp_path / "in" / "generation_config.json").write_text('{"eos_token_id": [1, 3]}', encoding="utf-8")
    run = regard.load(tmp_path / "in", device="cpu")
    export_run(run, tmp_path / "out", "hf")
    assert hf.GenerationConfig.from_pretrained(tmp_path / "out").eos_token_id == [1, 3]
    talk = [{"role": "user", "content": "the cat"}]
    before, after = (hf.AutoTokenizer.from_pretrained(tmp_path / place) for place in ("in", "out"))
    assert before.apply_chat_template(talk, tokenize=False) == after.apply_chat_template(talk, tokenize=False)
    again = regard.load(tmp_path / "out", device="cpu")
    assert (again.tokenizer.chat, again.tokenizer.turn_id, again.tokenizer.eos_id) == (template, 3, 1)
    assert again.chat("the cat", max_tokens=4) == run.chat("the cat", max_tokens=4)


HOSTILE = ["the cat sat", "  two  spaces ", "<eos> <unk> <mask>\n\n x\r\ny \n", "über 漢字 \t don't", "", "\r\n"]


@pytest.mark.parametrize("kind", ["bytes", "chars", "words", "bpe", "unigram"])
@pytest.mark.parametrize("framed", [False, True])
def test_auto_tokenizer_gives_our_ids_for_hostile_text(kind: str, framed: bool, tmp_path: Path) -> None:
    from regard.interop.hf_tokenizer_write import hf_tokenizer

    ours = train_tokenizer(kind, TEXT, vocab_size=290 if kind in ("bpe", "unigram") else None)
    for name, content in hf_tokenizer(ours, framed=framed, length=64).files().items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path)
    for text in HOSTILE:
        ids = ours.encode(text).tolist()
        assert theirs(text, add_special_tokens=False)["input_ids"] == ids, text
        assert theirs(text)["input_ids"] == [ours.eos_id, *ids, *[ours.eos_id] * framed], text
    assert theirs.mask_token_id == (ours.vocab_size if framed else None)


def test_what_no_architecture_says_is_refused_by_the_name_of_the_setting(tmp_path: Path) -> None:
    for settings, told in (
        ({"name": "gpt"}, "mlp.activation = relu_squared, stack.layers.0.mlp.gated = false; qwen3 is nearest"),
        ({"name": "gpt", **SILU, "position": "alibi"}, "mixer.position = alibi"),
        ({"name": "lstm"}, "no architecture of transformers is built like it"),
    ):
        with pytest.raises(UsageError, match=told) as error:
            export_run(made_run(tmp_path / "run", "text", **settings), tmp_path / "out", "hf", Asked())
        assert "\n" not in str(error.value)
        assert not (tmp_path / "out").exists()
