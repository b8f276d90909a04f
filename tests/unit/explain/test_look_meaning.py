"""One word in two texts: cosines against vectors taken by hand, and words that are not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from look_run import masked_run, pair_run, seen, tag_run, text_run
from regard.core import registry
from regard.core.data_spec import DataSpec
from regard.data.tokenizer import train_tokenizer
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.layers import vectors_by_layer
from regard.explain.looks.meaning import find, meaning
from regard.run.run import Run
from regard.tasks import task_named
from regard.tasks.pairs import PairProcessor
from regard.tasks.reading import Side
from regard.tasks.text import PlainText, TextProcessor

FIRST, SECOND = "the dog sees a cat", "a small dog runs"


@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba", "dan", "fnn"])
@torch.no_grad()
def test_vectors_by_layer_are_those_of_the_layers_one_after_the_other(name: str):
    run: Any = text_run(name)
    tokens = read(run, FIRST).inputs[0]
    found = vectors_by_layer(run.model, lambda: run.model(tokens))
    x = run.model.embedding(tokens, torch.zeros(1, dtype=torch.long))
    assert torch.equal(found["before"], x)
    for number, layer in enumerate(run.model.stack.layers, start=1):
        x = layer(x)[0]
        assert torch.allclose(found[f"layer {number}"], x)
    assert torch.allclose(found["output"], run.model.norm(x))
    assert torch.allclose(found["output"], run.model.encode(tokens))


@torch.no_grad()
def test_cosines_are_those_of_the_two_vectors():
    run: Any = text_run("gpt")
    view = seen(run, meaning, FIRST, other=SECOND, word="dog")
    one, two = (run.model.encode(read(run, text).inputs[0])[0, place] for text, place in ((FIRST, 2), (SECOND, 3)))
    line = view["cosines"].lines["dog in both texts"]
    assert line[0][1] == pytest.approx(1)  # before the first layer a word is a word
    assert line[-1][1] == pytest.approx(float(one @ two / (one.norm() * two.norm())))
    assert len(line) == 4


@torch.no_grad()
def test_neighbours_and_looks_are_the_nearest_and_the_largest():
    run: Any = text_run("gpt")
    view = seen(run, meaning, FIRST, other=SECOND, word="dog", layer=1)
    reading = read(run, FIRST)
    weights = reading.trace("*")["stack.layers.0.mixer.weights"][0].mean(0)[2]
    assert view["looks"].rows[0][1] == pytest.approx(float(weights.max()))
    assert view["looks"].rows[0][0] == reading.main.labels[int(weights.argmax())]
    cosines = [row[1] for row in view["neighbours"].rows if row[1] is not None]
    assert cosines == sorted(cosines, reverse=True)
    assert (
        "dog (2)" in [row[0] for row in view["neighbours"].rows]
        or cosines[-1] > view["cosines"].lines["dog in both texts"][-1][1]
    )


def test_models_without_attention_and_with_a_source_have_meanings_too():
    plain = seen(text_run("lstm"), meaning, FIRST, other=SECOND, word="dog")
    assert [panel.key for panel in plain.panels] == ["cosines", "neighbours"]
    for run in (masked_run(), tag_run(encoder="transformer")):
        assert seen(run, meaning, FIRST, other=SECOND, word="dog")["looks"].rows[0][1] > 0
    source = seen(pair_run("transformer"), meaning, FIRST, "a", other=SECOND, word="dog")
    assert source["cosines"].lines["dog in both texts"][0][1] < 1  # positions are added before the first layer


def test_the_places_that_are_compared_are_told():
    note = seen(text_run("gpt"), meaning, "the dog sees a dog", other=SECOND, word="dog")["cosines"].note
    assert "position 5 of the first text and position 3 of the second" in note


def test_words_are_found_by_their_offsets_and_the_last_of_several_is_taken():
    labels, words = ("<s>", "The", " ba", "nk", ", the", " bank."), (None, 0, 1, 1, 1, 2)
    side = Side("text", labels, words, ("The", "bank, the", "bank."))
    assert side.groups.labels == ("<s>", "The", "bank, the", "bank.")
    assert find(side, "bank") == 3
    assert find(side, "the") == 1
    assert find(side, "river") is None


@pytest.mark.parametrize("kind", ["bytes", "chars", "bpe"])
def test_words_are_whole_where_a_token_is_half_a_character(kind: str):
    texts = ["the cat was red", *(["café añ😀 shut"] if kind == "chars" else [])]  # unseen characters are <unk>
    tokenizer = train_tokenizer(kind, texts, vocab_size=262 if kind == "bpe" else None)
    torch.manual_seed(1)
    model: Any = registry.build("lstm", vocab_size=tokenizer.vocab_size, size="tiny")
    about = {"model": {"name": "lstm"}, "data": {"task": "text"}}
    run = Run(Path("run"), about, PlainText(), model.eval(), TextProcessor(tokenizer))
    side = read(run, "the café añ😀 é").main
    assert [label for label in side.groups.labels if label.strip()] == ["<s>", "the", "café", "añ😀", "é"]
    view = seen(run, meaning, "the café was red", other="the café was shut", word="café")
    assert re.search(r"positions \d+ to \d+ of the first text", view["cosines"].note)
    assert view["cosines"].lines["café in both texts"][0][1] == pytest.approx(1)


def test_a_word_of_a_source_that_is_read_backwards_is_spelt_forwards():
    tokenizer = train_tokenizer("bytes", [], vocab_size=None)
    processor = PairProcessor(tokenizer, tokenizer)
    torch.manual_seed(1)
    model: Any = registry.entry("seq2seq").config(DataSpec(257), size="tiny", reverse=True).build().eval()
    run = Run(
        Path("run"), {"model": {"name": "seq2seq"}, "data": {"task": "pairs"}}, task_named("pairs"), model, processor
    )
    labels = read(run, "the café", "a").sides[0].groups.labels
    assert [label for label in labels if label.strip()] == ["</s>", "café", "the"]


def test_a_word_that_is_not_in_both_texts_is_refused():
    run = text_run("gpt")
    with pytest.raises(UsageError, match="'cat' is not in the second text"):
        seen(run, meaning, FIRST, other=SECOND, word="cat")
    with pytest.raises(UsageError, match="'runs' is not in the first text"):
        seen(run, meaning, FIRST, other=SECOND, word="runs")
    with pytest.raises(UsageError, match="'tree' is in neither text"):
        seen(run, meaning, FIRST, other=SECOND, word="tree")


def test_without_a_word_the_view_asks_for_it():
    view = seen(text_run("gpt"), meaning, FIRST)
    assert "Give a word of the text" in view.panels[0].text
    assert {"other", "word"} <= {control.name for control in view.controls}
