"""Attention of a decoder over annotations: a small net as the score (Bahdanau et al. 2014), and the dot product.

e_tj = v_a . tanh(W_a s_(t-1) + U_a h_j)        alpha_t = softmax(e_t)        c_t = sum_j alpha_tj h_j
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.context import Context
from regard.core.tap import record
from regard.explain.view import Bars, Links, Panel, View
from regard.explain.worked.sheet import answer, array, formula, heat, listed, numbers, sheet, short, tensor, text
from regard.mixers.cross import CrossAttention, CrossAttentionConfig

S_BEFORE = tensor([0.5, -1.0])
ANNOTATIONS = tensor([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5], [0.25, 0.75, 1.0]])
W_A = tensor([[0.2, -0.4], [0.6, 0.1]])
U_A = tensor([[0.3, 0.5, -0.2], [-0.7, 0.2, 0.4]])
V_A = tensor([1.5, -0.8])
DOT_QUERY = tensor([0.3, 0.7, -0.2])
PLACES = ["h_1", "h_2", "h_3"]
SIDES, HIDDEN = ["1", "2", "3"], ["a 1", "a 2"]
SOURCE, TARGET = ["das", "Haus", "ist", "gross"], ["the", "house", "is", "big", "[EOS]"]


def view() -> View:
    return sheet("bahdanau", "A decoder looks at its source", _given(), _additive(), _dot(), _table())


def looked(attention: CrossAttention, queries: Tensor, memory: Tensor) -> dict[str, Tensor]:
    """What the taps say of queries (T, D) over a memory (S, D), by name."""
    with record(attention) as seen:
        attention(queries[None], attention.init_state(1), Context(memory=memory[None]))
    return {name: values[0][0] for name, values in seen.items()}


def with_dots(width: int) -> CrossAttention:
    """Cross-attention by plain dot products: queries, keys and values are what comes in."""
    config = CrossAttentionConfig(width, score="dot", project_values=False, project_output=False, bias=False)
    attention = config.build().double()
    attention.load_state_dict({name: torch.eye(width) for name in attention.state_dict()})
    return attention


def _given() -> Sequence[Panel]:
    return [
        text(
            "An encoder has read the source and left an annotation h_j at each word. The decoder is about to write its "
            "next word; s is its state.",
            "Translation with attention",
        ),
        numbers("annotations", ANNOTATIONS, "h_j", title="Annotations", rows=PLACES, columns=SIDES),
        numbers("s", S_BEFORE, "s_(t-1)", title="State of the decoder", rows=["s"], columns=["1", "2"]),
        numbers(
            "without_attention",
            ANNOTATIONS[-1],
            "c = h_T",
            title="Without attention: one vector for all steps",
            rows=["c"],
            columns=SIDES,
            note="The last state alone has to hold the whole sentence.",
        ),
    ]


def _additive() -> Sequence[Panel]:
    config = CrossAttentionConfig(
        2, d_memory=3, d_head=2, score="additive", project_values=False, project_output=False, bias=False
    )
    attention = config.build().double()
    attention.load_state_dict(
        {"input_to_queries.weight": W_A, "memory_to_keys.weight": U_A, "score.sum_to_score": V_A[None]}
    )
    seen = looked(attention, S_BEFORE[None], ANNOTATIONS)
    query, keys = seen["queries"][0, 0], seen["keys"][:, 0]
    weights, context = seen["weights"][0, 0], seen["summary"][0, 0]
    return [
        formula("e_tj = v_a . tanh(W_a s_(t-1) + U_a h_j)", title="The score is a small net"),
        numbers("W_a", W_A, "W_a", title="From the state", rows=HIDDEN, columns=["s 1", "s 2"]),
        numbers("U_a", U_A, "U_a", title="From the annotations", rows=HIDDEN, columns=["h 1", "h 2", "h 3"]),
        numbers("v_a", V_A, "v_a", title="To the score", rows=["v_a"], columns=HIDDEN),
        numbers("W_a_s", query, "W_a s_(t-1)", title="The query", rows=["query"], columns=HIDDEN),
        numbers("U_a_h", keys, "U_a h_j", title="The keys", rows=PLACES, columns=HIDDEN),
        numbers(
            "tanh", (query + keys).tanh(), "tanh(W_a s + U_a h_j)", title="Inside the net", rows=PLACES, columns=HIDDEN
        ),
        numbers("scores", seen["scores"][0, 0], "e_tj = v_a . tanh( .. )", title="Scores", rows=["e"], columns=PLACES),
        numbers("alpha", weights, "alpha_t = softmax(e_t)", title="Weights", rows=["alpha"], columns=PLACES),
        Bars(
            key="alpha_bars", title="How much of each annotation", names=PLACES, values=weights.tolist(), unit="alpha"
        ),
        numbers(
            "context",
            context,
            "c_t = sum_j alpha_tj h_j",
            title="The context of this step",
            rows=["c_t"],
            columns=SIDES,
        ),
        answer(
            "How best to get what the encoder knows into the decoder?",
            "Anew at every step: each c_t is its own mixture of all annotations, here with at most "
            f"{short(weights.max())} of one.",
        ),
    ]


def _dot() -> Sequence[Panel]:
    seen = looked(with_dots(3), DOT_QUERY[None], ANNOTATIONS)
    return [
        text("The net can be replaced: keys and values are the annotations, and the score is a dot product."),
        numbers("dot_query", DOT_QUERY, "q", title="A query", rows=["q"], columns=SIDES),
        numbers("dot_scores", seen["scores"][0, 0], "a~_j = k_j . q", title="Scores", rows=["a~"], columns=PLACES),
        numbers("dot_alpha", seen["weights"][0, 0], "a = softmax(a~)", title="Weights", rows=["a"], columns=PLACES),
        numbers("dot_context", seen["summary"][0, 0], "sum_j a_j v_j", title="Context", rows=["c"], columns=SIDES),
    ]


def _table() -> Sequence[Panel]:
    """Five steps over four words. Annotations are one-hot, so that a query is the list of its scores."""
    memory = torch.eye(len(SOURCE), dtype=torch.float64)
    queries = 3 * torch.cat([memory, torch.zeros(1, len(SOURCE))])
    attention = with_dots(len(SOURCE))
    whole = looked(attention, queries, memory)
    scores, weights = whole["scores"][0], whole["weights"][0]
    one_by_one = torch.stack([looked(attention, query[None], memory)["scores"][0, 0] for query in queries])
    gap = (one_by_one - scores).abs().max()
    return [
        text("Every step of the decoder adds a row: one query, compared with every key.", "The table of scores"),
        numbers("table", scores, "A~ = Q K^T", title="Scores", rows=TARGET, columns=SOURCE),
        heat("table_weights", weights, "A = softmax(A~)", TARGET, SOURCE),
        Links(
            key="links",
            title="Who looks at whom",
            weights=array(weights),
            upper=SOURCE,
            lower=TARGET,
            upper_name="source",
            lower_name="target",
            pairs=[(i, i) for i in range(len(SOURCE))],
        ),
        answer(
            "How large is it?",
            f"{len(TARGET)} steps by {len(SOURCE)} words: {scores.numel()} scores. Row by row or all at once, the "
            f"numbers are the same (largest difference {short(gap)}). The last row, {listed(weights[-1])}, looks at "
            "nothing in particular.",
        ),
    ]
