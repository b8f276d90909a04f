"""Fine-tuning: a run that starts from the encoder of another, its weights exactly, its tokenizer as it was."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.data.batch import NOT_COUNTED
from regard.data.example import Tagged
from regard.data.tokenizer import train_tokenizer
from regard.errors import RegardError
from regard.storage import tensors
from regard.tasks.vocabulary import PieceProcessor

STORIES = "world:stories?train=60&valid=12"
TINY: dict[str, Any] = {"device": "cpu", "batch_size": 4, "quiet": True}
# Layers of a stack carry their norm, attention and net; a tied head is no part of an encoder.
REVIEWS, TAGS = "world:reviews?train=30&valid=9", "world:tags?train=30&valid=9"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked and a causal model, an LSTM, a counted one, and a classifier that starts from nothing."""
    folder = tmp_path_factory.mktemp("runs")
    small = TINY | {"size": "tiny", "length": 24}
    for name in ("bert", "gpt", "lstm", "backpack"):
        regard.train(name, STORIES, budget="4steps", out=folder / name, **small)
    regard.train("ngram", STORIES, out=folder / "ngram", quiet=True)
    regard.train("classifier", REVIEWS, budget="1steps", out=folder / "classifier", **TINY | {"size": "tiny"})
    return folder


def started(runs: Path, name: str, data: str, out: Path, **settings: Any) -> Any:
    return regard.train(data=data, start=runs / name, out=out, **TINY | {"budget": "1steps"} | settings)


@pytest.mark.parametrize("data", [REVIEWS, TAGS])
@pytest.mark.parametrize("name", ["bert", "gpt", "lstm", "backpack"])
def test_the_encoder_starts_from_the_weights_of_the_run_exactly(runs: Path, name: str, data: str, tmp_path: Path):
    # A rate of nothing leaves what was loaded.
    run = started(runs, name, data, tmp_path / "r", lr=1e-30, weight_decay=0.0)
    own, theirs = tensors.weights_of(run.model.encoder), tensors.read(runs / name / "model.safetensors")
    assert len(own) > 4
    for key, value in own.items():
        torch.testing.assert_close(value, theirs[key], rtol=0, atol=0, msg=key)
    left = {key.partition(".")[0] for key in theirs.keys() - own.keys()}
    assert left <= {"head", "transform"}
    assert (run.path / "tokenizer.json").read_bytes() == (runs / name / "tokenizer.json").read_bytes()
    assert run.config["train"]["start"] == str(runs / name)
    assert run.config["origins"]["train.lr"] == "argument"


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_the_vectors_are_those_of_the_run(runs: Path, name: str, tmp_path: Path):
    run = started(runs, name, REVIEWS, tmp_path / "r", lr=1e-30, weight_decay=0.0)
    tokens = torch.tensor([run.processor.read("the boy was tired")])
    before: Any = regard.load(runs / name, device="cpu")
    torch.testing.assert_close(run.model.encoder(tokens)[0], before.model.encode(tokens), rtol=0, atol=0)


def test_a_fine_tuned_run_is_used_and_loaded_like_any_other(runs: Path, tmp_path: Path):
    run = started(runs, "bert", REVIEWS, tmp_path / "r")
    loaded: Any = regard.load(run.path, device="cpu")
    text = "the food was not good ."
    assert loaded.answers([text])[0] == run.answers([text])[0]
    assert loaded.evaluate().scores == run.evaluate().scores
    assert run.config["origins"]["train.lr"] == "fine-tuning"
    tagger = started(runs, "bert", TAGS, tmp_path / "t")
    answer = tagger.answers(["the boy sees the dog", ""])
    assert len(answer[0].details["tags"]) == 5
    assert answer[1].text == ""
    assert regard.load(tagger.path, device="cpu").evaluate().scores == tagger.evaluate().scores


def test_resume_of_a_fine_tuned_run_is_bit_identical(runs: Path, tmp_path: Path):
    settings = {"schedule": "constant", "warmup": 0.0, "save_every": 3, "evaluate_every": 3}
    started(runs, "gpt", REVIEWS, tmp_path / "whole", budget="7steps", **settings)
    started(runs, "gpt", REVIEWS, tmp_path / "parts", budget="3steps", **settings)
    regard.train(out=tmp_path / "parts", budget="7steps", resume=True, quiet=True)
    pair = [(tmp_path / name / "checkpoints/00000007/model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert pair[0] == pair[1]


def test_a_batch_of_tags_is_its_sentences_one_by_one(runs: Path, tmp_path: Path):
    run = started(runs, "gpt", TAGS, tmp_path / "r")
    sentences = [" ".join(example.words) for example in run.dataset.examples]
    together = [answer.details["tags"] for answer in run.answers(sentences)]
    assert together == [run.answers([sentence])[0].details["tags"] for sentence in sentences]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["bpe", "chars", "words", "bytes"])
def test_one_piece_of_each_word_carries_its_tag(kind: str, last: bool):
    seen = ["the unhappy dog sat on the mat", *(["zébi!"] if kind == "chars" else [])]  # unseen ones are <unk>
    tokenizer = train_tokenizer(kind, seen)
    processor = PieceProcessor(tokenizer, ("A", "B"), last)
    words = ("the", "unhappiest", "dog", "zébu", "!")
    example = Tagged(words, ("A", "B", "A", "A", "B"))
    row = processor.rows([example]).batch_of(np.array([0]), np.array([0]))
    ids, targets = row.tokens[0].tolist(), row.targets[0].tolist()
    assert ids[0] == ids[-1] == tokenizer.eos_id
    assert [one for one in targets if one != NOT_COUNTED] == [0, 1, 0, 0, 1]
    places = [place for place, one in enumerate(targets) if one != NOT_COUNTED]
    assert places == processor.places(words).tolist()
    if kind != "words":
        assert tokenizer.decode(ids) == " ".join(words)
        # What is read up to and with the piece of a word: all of it, or all before it and at least a space or a byte.
        for word, place in enumerate(places):
            whole = " ".join(words[: word + 1])
            read = tokenizer.decode(ids[: place + 1])
            assert read == whole if last else whole.startswith(read.rstrip("\ufffd"))
            assert last or tokenizer.decode(ids[:place]) == " ".join(words[:word])


def test_the_head_learns_and_the_encoder_moves(runs: Path, tmp_path: Path):
    run = started(runs, "bert", REVIEWS, tmp_path / "r", budget="20steps", lr=3e-3, pooling="mean")
    theirs = tensors.read(runs / "bert" / "model.safetensors")
    moved = [key for key, value in tensors.weights_of(run.model.encoder).items() if not torch.equal(value, theirs[key])]
    assert len(moved) > 10
    assert run.config["model"]["config"]["pooling"]["form"] == "mean"


@pytest.mark.parametrize(
    ("name", "data", "settings", "message"),
    [
        (
            "classifier",
            TAGS,
            {},
            "of the task labelled, and the data is of the task tagged; start from one of tagged or",
        ),
        ("ngram", REVIEWS, {}, "ngram is fitted at once and has nothing to go on with"),
        ("nothing", REVIEWS, {}, "nothing"),
        (
            "bert",
            STORIES,
            {"task": "text"},
            "of the task masked, and the data is of the task text; start from one of text",
        ),
        ("bert", "world:dates?train=20&valid=5", {}, "and the data is of the task pairs; start from one of pairs"),
        ("gpt", STORIES, {"n_layers": 3}, r"model.n_layers: the model is that of .*gpt; leave it out"),
        ("gpt", STORIES, {"tokens": "bytes"}, "data.tokens: the tokens are those of the run"),
        ("gpt", STORIES, {"lora": 0}, "expected a rank from 1 to 15, below the width of the model, found 0"),
        ("gpt", STORIES, {"lora": 16}, "expected a rank from 1 to 15, below the width of the model, found 16"),
        ("gpt", STORIES, {"freeze": "layer.0"}, "'layer.0' names no part of the model, did you mean 'layers.0'"),
        ("bert", REVIEWS, {"d_model": 32}, r"model.d_model: the encoder is that of .*bert; leave it out"),
        ("bert", REVIEWS, {"size": "base"}, r"model.size: the encoder is that of .*bert; leave it out"),
        ("bert", REVIEWS, {"tokens": "bpe"}, "data.tokens: the tokens are those of the run"),
        ("bert", TAGS, {"vocab_size": 50}, "data.vocab_size: the tokens are those of the run"),
    ],
)
def test_what_cannot_start_is_refused_in_one_line(
    runs: Path, name: str, data: str, settings: dict[str, Any], message: str, tmp_path: Path
):
    with pytest.raises(RegardError, match=message) as caught:
        started(runs, name, data, tmp_path / "r", **settings)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "r" / "config.json").exists()


def test_a_start_that_is_damaged_is_refused(runs: Path, tmp_path: Path):
    shutil.copytree(runs / "bert", tmp_path / "bert")
    file = tmp_path / "bert" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(RegardError, match=re.escape(str(file))):
        started(tmp_path, "bert", REVIEWS, tmp_path / "r")
    assert not (tmp_path / "r" / "config.json").exists()


def test_continuing_with_another_start_is_refused(runs: Path, tmp_path: Path):
    started(runs, "bert", REVIEWS, tmp_path / "r")
    with pytest.raises(RegardError, match="another run is in the folder"):
        regard.train(out=tmp_path / "r", resume=True, budget="2steps", start=str(runs / "gpt"), quiet=True)
