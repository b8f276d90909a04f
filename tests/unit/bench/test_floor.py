"""Floors of small models, beside numbers worked out by hand and products counted by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard.bench.floor import (
    Cost,
    PairCounts,
    TextCounts,
    beam_cost,
    generation_cost,
    matrices,
    pair_training_cost,
    source_steps_cost,
    token_cost,
    training_cost,
)
from regard.bench.step import GPT2
from regard.core import registry
from regard.core.inputs import SourceTokens

V, D = 65, 16
LAYER = 3 * D * D + D * D + 2 * 4 * D * D  # queries, keys and values; output; two maps of the net between
HEAD = V * D


def model_of(name: str, **settings: Any) -> Any:
    return registry.build(name, vocab_size=V, **settings)


def tiny_gpt(**settings: Any) -> Any:
    return model_of("gpt", d_model=D, n_layers=2, n_heads=2, max_length=32, **settings)


def products(work: Any) -> int:
    """Operations of matrix products, attention's not among them, as torch counts them."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        work()
    counted = counter.get_flop_counts()["Global"]
    return sum(count for kind, count in counted.items() if str(kind) in ("aten.mm", "aten.addmm"))


def test_a_training_step_of_a_transformer_is_six_operations_a_weight_and_those_of_attention():
    rows, length = 3, 8
    looked = sum(2 * 2 * D * t for t in range(1, length + 1))  # keys and values of two layers
    weights = 2 * LAYER + HEAD
    norms = 2 * (2 * D + 2 * D // 2) + D
    moved = 4 * (9 * (weights + HEAD + norms) + 2 * weights)  # the table of the embedding is no product
    assert training_cost(tiny_gpt(), rows, length) == Cost(6 * rows * (weights * length + looked), moved)


def test_attention_costs_what_the_papers_say():
    """12 x layers x width x length for a token in training where all is looked at, half of it in causal attention."""
    length = 400
    counts = TextCounts.of(tiny_gpt())
    attention = training_cost(tiny_gpt(), 1, length).operations - 6 * (counts.layers + counts.head) * length
    assert attention / length == pytest.approx(12 * 2 * D * length / 2, rel=0.01)


def test_a_head_that_shares_the_table_is_counted_once_and_as_a_product():
    tied = tiny_gpt(**GPT2)
    assert list(matrices(tied)).count("head.weight") == 1
    assert sum(weight.numel() for weight in matrices(tied).values()) == 2 * LAYER + HEAD
    assert TextCounts.of(tied).head == HEAD


def test_generation_reads_the_weights_for_every_token_and_the_keys_of_all_before_it():
    rows, prompt, count = 3, 5, 4
    kept = 2 * 2 * D  # numbers that a token leaves in the state
    operations = bytes_moved = 0
    for step in range(count):  # the prompt with the first token, then one token each
        new = prompt if step == 0 else 1
        before = 0 if step == 0 else prompt + step - 1
        looked = sum(kept * (before + place) for place in range(1, new + 1))
        operations += 2 * rows * (2 * LAYER * new + looked + HEAD)
        bytes_moved += 4 * (2 * LAYER + HEAD + rows * kept * before)
    assert generation_cost(tiny_gpt(), rows, prompt, count) == Cost(operations, bytes_moved)


def test_half_the_bytes_a_number_are_half_the_bytes():
    whole, half = (generation_cost(tiny_gpt().to(dtype), 1, 4, 2) for dtype in (torch.float32, torch.bfloat16))
    assert half == Cost(whole.operations, whole.bytes / 2)


def test_a_recurrence_looks_at_a_state_of_one_size():
    lstm = model_of("lstm", d_model=D, n_layers=1)
    cell, state = 2 * 4 * D * D, 2 * D
    assert TextCounts.of(lstm) == TextCounts(cell, HEAD, state, 0, 4)
    assert token_cost(lstm, 3, 100) == Cost(2 * 3 * (cell + state), 4 * (cell + 3 * state))
    mamba = model_of("mamba", d_model=D, n_layers=1)
    assert TextCounts.of(mamba).start == 2 * D * 16 + 2 * D * 3  # sixteen numbers a channel, and the last three inputs


def test_the_weights_of_products_are_those_that_torch_multiplies():
    model, tokens = tiny_gpt(), torch.zeros(2, 7, dtype=torch.long)
    counts = TextCounts.of(model)
    assert products(lambda: model.head(model(tokens)[0])) == 2 * 14 * (counts.layers + counts.head)


def test_a_pairs_weights_are_multiplied_with_the_tokens_that_they_read():
    model = model_of("transformer", d_model=D, n_layers=1, n_heads=2, dropout=0.0)
    cross = 4 * D * D
    counts = PairCounts.of(model)
    assert counts == PairCounts(LAYER + cross // 2, 0, TextCounts(LAYER + cross // 2, HEAD, 0, 2 * D, 4), 2 * D, 2 * D)
    source, tokens = torch.ones(2, 5, dtype=torch.long), torch.ones(2, 3, dtype=torch.long)
    counted = products(lambda: model.head(model(SourceTokens(source, tokens))[0]))
    assert counted == 2 * (10 * counts.source + 6 * (counts.text.layers + HEAD))


def test_a_training_step_on_pairs_counts_real_tokens_only():
    model = model_of("transformer", d_model=D, n_layers=1, n_heads=2, dropout=0.0)
    half = LAYER + 2 * D * D
    sources, targets = [3, 5], [4, 2]
    own = 2 * D * (sum(range(1, 5)) + sum(range(1, 3)))  # tokens before each, and itself
    across = 2 * D * (3 * 4 + 5 * 2)
    within = 2 * D * (3 * 3 + 5 * 5)
    met = half * sum(sources) + (half + HEAD) * sum(targets) + own + across + within
    assert pair_training_cost(model, sources, targets).operations == 6 * met


def test_a_beam_reads_its_sources_once_and_their_memory_once_for_all_its_rows():
    model = model_of("transformer", d_model=D, n_layers=1, n_heads=2, dropout=0.0)
    half, sources, width = LAYER + 2 * D * D, [3, 5], 4
    total = sum(sources)
    encoded = half * total + 2 * D * (3 * 3 + 5 * 5)
    first = 2 * (half + HEAD + 2 * D) + 2 * D * total
    second = 2 * width * (half + HEAD + 2 * 2 * D) + width * 2 * D * total
    read = half + 2 * (half + HEAD) + 2 * 2 * D * total + 2 * width * 2 * D
    assert beam_cost(model, sources, width, 2) == Cost(2 * (encoded + first + second), 4 * read)
    step = Cost(2 * (2 * width * (half + 2 * D) + width * 2 * D * total), 4 * (half + 2 * D * total))
    assert source_steps_cost(model, sources, width, 3) == step * 3


@pytest.mark.parametrize(("name", "memory"), [("bahdanau", 3 * D), ("seq2seq", 0)])
def test_a_recurrent_decoder_looks_at_the_source_where_it_has_attention(name: str, memory: int):
    """RNNsearch: a key of the width for each token of the source, and a value of both directions."""
    counts = PairCounts.of(model_of(name, d_model=D, dropout=0.0))
    assert (counts.memory, counts.self_looks) == (memory, 0)
    assert counts.once > 0
