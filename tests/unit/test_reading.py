"""A run is used as it was trained: the same context, the same way of reading, the same loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.core import registry
from regard.data.batch import Batch
from regard.data.shard import TokenShard
from regard.data.tokenizer import train_tokenizer
from regard.decoding.generate import Limits, generate
from regard.decoding.score import score
from regard.errors import UsageError
from regard.evaluation.language import Habit, evaluate
from regard.run.recipe import read_recipe
from regard.training.losses import model_loss


@pytest.fixture
def gpt():
    return registry.build("gpt", vocab_size=9, size="tiny").double().eval()


def test_a_window_bounds_what_a_score_depends_on(gpt):
    first, second = torch.randint(9, (20,)), torch.randint(9, (20,))
    second[-6:] = first[-6:]
    a, b = (score(gpt, [text], start_id=8, window=4)[0].log_probs[-1] for text in (first, second))
    assert a == pytest.approx(b, abs=1e-12)
    a, b = (score(gpt, [text], start_id=8)[0].log_probs[-1] for text in (first, second))
    assert abs(a - b) > 1e-9


def test_a_window_makes_generation_slide(gpt):
    (plain,) = generate(gpt, [torch.tensor([1, 2])], limits=Limits(12))
    (slid,) = generate(gpt, [torch.tensor([1, 2])], limits=Limits(12, window=6))
    assert plain.slides == 0
    assert slid.slides > 0
    assert len(slid.tokens) == 12


def test_a_state_that_was_not_carried_in_training_is_not_carried_in_evaluation():
    model = registry.build("lstm", vocab_size=257, size="tiny").double().eval()
    tokenizer = train_tokenizer("bytes", [])
    ids = np.random.default_rng(0).integers(0, 256, 600).astype(np.uint16)
    shard = TokenShard(ids, np.array([0]), 600, 600)
    carried, fresh = (
        evaluate(model, shard, tokenizer=tokenizer, length=8, habit=Habit(carries=c)).loss for c in (True, False)
    )
    assert carried != pytest.approx(fresh, abs=1e-9)


def test_documents_that_stood_alone_in_training_stand_alone_in_evaluation():
    model = registry.build("lstm", vocab_size=257, size="tiny").double().eval()
    tokenizer = train_tokenizer("bytes", [])
    one = np.frombuffer(b"abcdefgh", dtype=np.uint8).astype(np.uint16)
    ids = np.concatenate([one, [256], one, [256]]).astype(np.uint16)
    shard = TokenShard(ids, np.array([0, 9]), 16, 16)
    alone = TokenShard(ids[:9], np.array([0]), 8, 8)
    habit = Habit(by_document=True)
    whole = evaluate(model, shard, tokenizer=tokenizer, length=32, habit=habit).loss
    assert whole == pytest.approx(evaluate(model, alone, tokenizer=tokenizer, length=32, habit=habit).loss, abs=1e-12)


def test_label_smoothing_acts_while_training_only():
    model = registry.build("rnn", vocab_size=9, size="tiny")
    tokens = torch.randint(9, (2, 5))
    batch = Batch(tokens, tokens, torch.full((2,), 5), [0, 1])
    plain = model_loss(model.eval(), batch, None)[0].item()
    assert model_loss(model, batch, None, label_smoothing=0.3)[0].item() == pytest.approx(plain)
    assert model_loss(model.train(), batch, None, label_smoothing=0.3)[0].item() != pytest.approx(plain)


def test_dropout_of_a_normed_recurrent_stack_leaves_the_size_of_what_the_head_reads():
    model = registry.build("lstm", vocab_size=50, size="small", dropout=0.5, d_model=64).double()
    # So large that the stream is the words: what layers make of the half that they see is smaller in the mean.
    torch.nn.init.normal_(model.embedding.token_to_vector.weight)
    tokens = torch.randint(50, (4, 12))
    resting = model.eval().encode(tokens)
    model.train()
    mean = torch.stack([model.encode(tokens) for _ in range(200)]).mean(0)
    projection = (mean * resting).sum() / resting.square().sum()
    assert 0.8 < projection < 1.2


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_words_begin_small_where_a_norm_reads_them(name: str):
    plain = {"norm": "none", "residual": False}
    for settings, size in (({}, 0.05), ({"tied": True}, 0.05), (plain, 1.0), (plain | {"tied": True}, 0.05)):
        model = registry.build(name, vocab_size=500, size="small", **settings)
        assert model.embedding.token_to_vector.weight.std().item() == pytest.approx(size, rel=0.02)


def test_files_of_a_recipe_are_found_beside_it(tmp_path: Path):
    recipe = tmp_path / "r.toml"
    recipe.write_text('[data]\npath = "a.txt"\nvalid = "v.txt"\n', encoding="utf-8")
    found = read_recipe(recipe)
    assert Path(found["data.valid"].value) == tmp_path / "v.txt"
    recipe.write_text('[data]\nvalid = "tail:0.2"\n', encoding="utf-8")
    assert read_recipe(recipe)["data.valid"].value == "tail:0.2"


@pytest.mark.parametrize("name", ["fnn", "dan"])
def test_an_impossible_inner_width_is_refused_in_one_line(name: str):
    with pytest.raises(UsageError, match="d_hidden must be positive"):
        registry.build(name, vocab_size=9, size="tiny", d_hidden=-5)
