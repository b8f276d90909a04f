"""That trick was sick: how the other words of a sentence choose between two senses of one word (a Backpack).

    o_i = sum_l sum_j alpha_lij C(x_j)_l          Hewitt et al. 2023, equation 2

The slides leave open how alpha follows from the senses. Five readings fit them; all are worked out.

Glossary
C(x_j)_l  sense l of word j, a vector of four places
u_i       the query of word i: the sum of all senses of all other words
m_li      match: C(x_i)_l . u_i
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.explain.view import Bars, Curves, Panel, View
from regard.explain.worked.sheet import answer, formula, heat, listed, numbers, sheet, short, tensor, text
from regard.layers.score import build_score, softmax

WORDS = ["that", "trick", "was", "sick"]
SENSES = tensor(
    [
        [[0, 0, 0, 0], [0, 0, 0, 0]],
        [[0, 0, 1, 0], [0, 0, 0, 0]],
        [[0, 0, 0, 0], [0, 0, 0, 0]],
        [[1, 0, 1, 0], [0, 1, 0, 1]],
    ]
)  # (T, C, D)
NURSE = tensor([[0, 0, 0, 1], [0, 0, 0, 0]])
AXES = ["positive", "negative", "skating", "health"]
NAMED = [f"{word} {sense}" for word in WORDS for sense in (1, 2)]
BOTH = ["sense 1", "sense 2"]
BETAS = (1, 5, 10, 100)
SHARPNESS = (10, 20, 50)


def view() -> View:
    parts = (_given, _linear, _normalised, _over_senses, _over_positions, _joint, _result, _nurse)
    return sheet("sick", "That trick was sick", *(part() for part in parts))


def queries(senses: Tensor) -> Tensor:
    """u_i (T, D): the senses of all words but the word itself."""
    return senses.sum((0, 1)) - senses.sum(1)


def matches(senses: Tensor) -> Tensor:
    """m_li by the dot score, each sense a head; (T, C)."""
    n_senses, width = senses.shape[1:]
    asked = queries(senses)[None, :, None].expand(-1, -1, n_senses, -1)
    return build_score("dot", n_senses, width)(asked, senses[None])[0].diagonal(dim1=1, dim2=2).T


def chosen(alpha: Tensor, senses: Tensor = SENSES) -> Tensor:
    """Outputs (T, D) where every word draws on its own senses only; alpha (T, C)."""
    return torch.einsum("TC,TCD->TD", alpha, senses)


def sentiment(vector: Tensor) -> Tensor:
    return vector[..., 0] - vector[..., 1]


def _given() -> Sequence[Panel]:
    return [
        text(
            "Every word has two sense vectors of four places. The third place means skateboarding; the others follow "
            "from the two senses of 'sick'. The words 'that' and 'was' mean nothing here.",
            "A Backpack over four words",
        ),
        numbers("senses", SENSES, "C(x_j)_l", title="The senses", rows=NAMED, columns=AXES),
        text("alpha is 0 where j differs from i: a word draws on its own senses only. Which of them?"),
        answer("How can you make this selection happen with attention?", "With queries, keys and values as follows."),
        answer("What are the values?", "The sense vectors: they are what is passed on."),
        answer("What are the keys?", "The sense vectors again: a sense is found by what it means."),
        answer("But what are the queries?", "For word i, the sum of all senses of all other words."),
        numbers(
            "queries",
            queries(SENSES),
            "u_i = sum over r != i, l of C(x_r)_l",
            title="Queries",
            rows=WORDS,
            columns=AXES,
        ),
        numbers("matches", matches(SENSES), "m_li = C(x_i)_l . u_i", title="Matches", rows=WORDS, columns=BOTH),
    ]


def _linear() -> Sequence[Panel]:
    alpha = matches(SENSES)
    output = chosen(alpha)
    # The whole of alpha, words by all senses: zero wherever a sense belongs to another word.
    whole = (torch.eye(4, dtype=torch.float64)[:, :, None] * alpha[:, None]).flatten(1)
    return [
        formula("alpha_lij = m_li where j = i, else 0", title="Reading 1: the match itself"),
        heat("linear_alpha", whole, "alpha, every word over all senses", WORDS, NAMED),
        numbers(
            "linear_outputs",
            whole @ SENSES.flatten(0, 1),
            "o = alpha C        (4 x 8) (8 x 4)",
            title="All together as one product",
            rows=WORDS,
            columns=AXES,
            marked=[(3, 0), (3, 2)],
            note=f"'sick' keeps its first sense alone. All words together: {listed(output.sum(0))}.",
        ),
        numbers("linear_sum", output.sum(0), "sum_i o_i", title="The whole sentence", rows=["sum"], columns=AXES),
        numbers(
            "linear_sentiment",
            sentiment(output)[:, None],
            "positive - negative",
            title="Sentiment",
            rows=WORDS,
            columns=["sentiment"],
        ),
    ]


def shares() -> Tensor:
    """alpha (T, C) of reading 2."""
    match = matches(SENSES)
    total = match.sum(1, keepdim=True)
    return torch.where(total > 0, match / total, 0.0)


def _normalised() -> Sequence[Panel]:
    alpha = shares()
    return [
        formula("alpha_lii = m_li / sum_l m_li, and 0 where nothing matches", title="Reading 2: shares"),
        numbers("shares", alpha, "alpha_lii", title="Shares of the senses", rows=WORDS, columns=BOTH),
        numbers("shares_outputs", chosen(alpha), "o_i", title="Outputs", rows=WORDS, columns=AXES),
    ]


def _over_senses() -> Sequence[Panel]:
    alphas = torch.stack([softmax(beta * matches(SENSES)) for beta in BETAS])  # (betas, T, C)
    outputs = torch.stack([chosen(alpha) for alpha in alphas])
    grid = [n / 10 for n in range(101)]
    curve = [(beta, float(sentiment(chosen(softmax(beta * matches(SENSES)))[3]))) for beta in grid]
    rows = [f"beta {beta}, {word}" for beta in BETAS for word in WORDS]
    return [
        formula("alpha_lii = softmax over l of beta m_li", title="Reading 3: softmax over the senses of a word"),
        numbers("softmax_alpha", alphas, "alpha_lii", title="Weights of the senses", rows=rows, columns=BOTH),
        numbers("softmax_outputs", outputs, "o_i", title="Outputs", rows=rows, columns=AXES),
        numbers(
            "softmax_sentiment",
            sentiment(outputs[:, 3]),
            "positive - negative",
            title="Sentiment of 'sick'",
            rows=["sick"],
            columns=[f"beta {beta}" for beta in BETAS],
            note="It is tanh(beta / 2). The sharper the softmax, the nearer to reading 2.",
        ),
        Curves(
            key="softmax_curve",
            title="Sentiment of 'sick' by sharpness",
            lines={"sentiment": curve},
            x="beta",
            y="positive - negative",
        ),
    ]


def over_positions(sharpness: float) -> Tensor:
    """alpha (C, T, S) of reading 4, with a query and a key for every sense.

    query of word i, sense l: (B m_li onehot(i), B / 2)      key of word j: (onehot(j), 1 if its senses are all zero)
    """
    n_words, n_senses, _ = SENSES.shape
    onehot = torch.eye(n_words, dtype=torch.float64)
    asked = sharpness * onehot[:, None] * matches(SENSES)[..., None]  # (T, C, T)
    asked = torch.cat([asked, torch.full((n_words, n_senses, 1), sharpness / 2)], -1)
    empty = (SENSES == 0).all(-1).all(-1).double()
    keys = torch.cat([onehot, empty[:, None]], -1)[:, None].expand(-1, n_senses, -1)
    return softmax(build_score("dot", n_senses, n_words + 1)(asked[None], keys[None])[0])


def _over_positions() -> Sequence[Panel]:
    panels: list[Panel] = []
    for b in SHARPNESS:
        alpha = over_positions(b)
        output = torch.einsum("CTS,SCD->TD", alpha, SENSES)
        rows = [f"{word}, {sense}" for sense in BOTH for word in WORDS]
        panels += [
            numbers(f"positions_alpha_{b}", alpha, f"B = {b}", title="alpha_lij", rows=rows, columns=WORDS),
            numbers(
                f"positions_outputs_{b}",
                output,
                "o_i",
                title=f"Outputs, B = {b}",
                rows=WORDS,
                columns=AXES,
                note=f"Sentiment of 'sick': {short(sentiment(output[3]))}.",
            ),
        ]
    return [
        text(
            "A Backpack as published normalises every sense over the positions. A sense cannot be switched off, unless "
            "its weight can go to words whose senses are all zero. Here 'that' and 'was' take what is not wanted.",
            "Reading 4: softmax over positions",
        ),
        formula("alpha_lij = softmax over j of  B [j = i] m_li + B/2 [all senses of x_j are zero]"),
        *panels,
        heat("positions_heat_1", over_positions(10)[0], "Sense 1, B = 10", WORDS, WORDS),
        heat("positions_heat_2", over_positions(10)[1], "Sense 2, B = 10", WORDS, WORDS),
    ]


def joint(beta: float) -> Tensor:
    """alpha (T C,) of reading 5: 'sick' over all senses of all words."""
    asked = (beta * queries(SENSES)[3])[None, None, None]
    return softmax(build_score("dot", 1, 4)(asked, SENSES.flatten(0, 1)[None, :, None]))[0, 0, 0]


def _joint() -> Sequence[Panel]:
    alphas = torch.stack([joint(beta) for beta in (1, 10)])
    rows = ["beta 1", "beta 10"]
    return [
        formula("alpha = softmax over all (j, l) of beta C(x_j)_l . u_sick", title="Reading 5: no mask"),
        numbers("joint_alpha", alphas.T, "alpha", title="Weights of all senses", rows=NAMED, columns=rows),
        numbers(
            "joint_outputs",
            alphas @ SENSES.flatten(0, 1),
            "o_sick = sum alpha_lj C(x_j)_l",
            title="Outputs of 'sick'",
            rows=rows,
            columns=AXES,
            note="Without the mask 'trick 1' and 'sick 1' tie. Sharpened, the health sense still gets almost nothing.",
        ),
    ]


def _result() -> Sequence[Panel]:
    readings = {
        "1 the match": chosen(matches(SENSES))[3],
        "2 shares": chosen(shares())[3],
        "3 softmax, beta 1": chosen(softmax(matches(SENSES)))[3],
        "3 softmax, beta 10": chosen(softmax(10 * matches(SENSES)))[3],
        "4 over positions, B 10": torch.einsum("CTS,SCD->TD", over_positions(10), SENSES)[3],
        "5 no mask, beta 1": joint(1) @ SENSES.flatten(0, 1),
        "5 no mask, beta 10": joint(10) @ SENSES.flatten(0, 1),
    }
    return [
        Bars(
            key="sentiments",
            title="Sentiment of 'sick' by reading",
            names=list(readings),
            values=[float(sentiment(vector)) for vector in readings.values()],
            unit="positive - negative",
        ),
        answer(
            "Where does the sentiment come from?",
            f"{float(shares()[3, 0]):.0%} of it from the skateboarding sense of 'sick', because 'trick' asks for it. "
            "Every reading agrees on the side; they differ in how sharply they choose.",
        ),
    ]


def _nurse() -> Sequence[Panel]:
    senses = SENSES.clone()
    senses[1] = NURSE
    match, output = matches(senses)[3], chosen(matches(senses), senses)[3]
    words = ["sick"]
    return [
        text("The same word in other company: 'nurse' means health.", "That nurse was sick"),
        numbers("nurse_query", queries(senses)[3], "u_sick", title="Query", rows=words, columns=AXES),
        numbers("nurse_matches", match, "m_l", title="Matches", rows=words, columns=BOTH),
        numbers(
            "nurse_output",
            output,
            "o_sick",
            title="Output, reading 1",
            rows=words,
            columns=AXES,
            note=f"Sentiment: {short(sentiment(output))}.",
        ),
    ]
