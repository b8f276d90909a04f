"""Attention over annotations by hand (Bahdanau et al. 2014): additive scores, and the dot product in their place."""

from __future__ import annotations

import torch
from exact import load, same, tensor
from torch import Tensor

from regard.core.context import Context
from regard.core.tap import record
from regard.mixers.cross import CrossAttention, CrossAttentionConfig

GOLDEN = load("bahdanau")


@torch.no_grad()
def heard(attention: CrossAttention, query: Tensor) -> dict[str, Tensor]:
    """What the taps say of one query over the annotations."""
    memory = tensor(GOLDEN["annotations"])[None]
    state = attention.init_state(1)
    with record(attention, "*") as found:
        attention(query[None, None], state, Context(memory=memory))
    return {name: values[0] for name, values in found.items()}


def test_alignment_and_context_are_those_of_the_equations():
    config = CrossAttentionConfig(
        2, d_memory=3, d_head=2, score="additive", project_values=False, project_output=False, bias=False
    )
    attention = config.build().double()
    with torch.no_grad():
        attention.input_to_queries.weight.copy_(tensor(GOLDEN["W_a"]))
        attention.memory_to_keys.weight.copy_(tensor(GOLDEN["U_a"]))
        attention.score.sum_to_score.copy_(tensor(GOLDEN["v_a"])[None])  # pyright: ignore
    found = heard(attention, tensor(GOLDEN["s_prev"]))
    same(found["queries"].flatten(), GOLDEN["W_a_s"])
    same(found["scores"].flatten(), GOLDEN["scores"])
    same(found["weights"].flatten(), GOLDEN["alpha"])
    same(found["summary"].flatten(), GOLDEN["context"])


def test_the_dot_product_in_the_place_of_the_net():
    golden = GOLDEN["dot_product_variant"]
    config = CrossAttentionConfig(3, score="dot", project_values=False, project_output=False, bias=False)
    attention = config.build().double()
    with torch.no_grad():
        attention.input_to_queries.weight.copy_(torch.eye(3))
        attention.memory_to_keys.weight.copy_(torch.eye(3))
    found = heard(attention, tensor(golden["q"]))
    for tap, key in (("scores", "scores"), ("weights", "alpha"), ("summary", "context")):
        same(found[tap].flatten(), golden[key])


def test_one_row_of_scores_for_each_decoder_step():
    shape = GOLDEN["key_value_table_shape"]
    attention = CrossAttentionConfig(4).build()
    memory, queries = torch.randn(1, shape["n_encoder"], 4), torch.randn(1, shape["n_decoder"], 4)
    with record(attention, "scores") as found:
        attention(queries, attention.init_state(1), Context(memory=memory))
    assert list(found["scores"][0].shape[-2:]) == shape["score_matrix"]
