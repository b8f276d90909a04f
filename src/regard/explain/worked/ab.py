"""Attention over A A B A: one query, a sharper one, matrices of its own for keys and queries, self-attention.

    scores_i = k_i . q        weights = softmax(scores)        output = sum_i weights_i v_i

The lecture pretends that e is 3, which makes every weight a fraction. Both bases are shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.explain.view import Bars, Curves, Panel, View
from regard.explain.worked.head import ask, head, look
from regard.explain.worked.sheet import answer, fractions, heat, listed, numbers, sheet, short, tensor, text
from regard.mixers.mean import MeanConfig

LETTERS = {"A": [1, 0], "B": [0, 1]}
STRING = "AABA"
PLACES = [f"{place} {letter}" for place, letter in enumerate(STRING, 1)]
SIDES = ["A", "B"]
IDENTITY = tensor([[1, 0], [0, 1]])
BASES = {"base 3": 3.0, "base e": None}
LENGTHS = (4, 8, 16, 64, 256, 1024, 65536)


def view() -> View:
    e = embedded(STRING)
    parts = (_given, _one_query, _sharper, _decoupled, _self_attention, _ten_times, _all_strings)
    return sheet("ab", "Attention over A A B A", *(part(e) for part in parts), _longer())


def embedded(string: str) -> Tensor:
    return tensor([LETTERS[letter] for letter in string])


def averaged(e: Tensor) -> Tensor:
    """What a deep averaging network makes of the letters: their mean."""
    return MeanConfig(e.shape[-1]).build().double()(e[None])[0][0, -1]


def _given(e: Tensor) -> Sequence[Panel]:
    mean = averaged(e)
    return [
        text(
            "Strings of four letters, each A or B. The next letter is A where all four are A, and B where there is any "
            "B. To solve this, one has to look through the string for a B.",
            "The task",
        ),
        numbers("E", e, "A = [1, 0]    B = [0, 1]", title="Embeddings of A A B A", rows=PLACES, columns=SIDES),
        numbers(
            "dan_average",
            mean,
            "(e_1 + e_2 + e_3 + e_4) / 4",
            title="A DAN takes the average",
            rows=["average"],
            columns=SIDES,
            note=f"{fractions(mean)}. Every letter counts the same, so that the one B has little to say.",
        ),
    ]


def _one_query(e: Tensor) -> Sequence[Panel]:
    q = tensor([0, 1])
    outputs = _asked(q, e)[1]
    masses = {"average": averaged(e)[1], "attention, base 3": outputs[0, 1], "attention, base e": outputs[1, 1]}
    return [
        text(
            "Attention asks a question instead. The query q says what is looked for, here a B. Keys and values are the "
            "embeddings themselves for now. Suppose for a moment that e is 3: then all weights are fractions.",
            "Attention with one query",
        ),
        numbers("q", q, "q = B", title="The query", rows=["q"], columns=SIDES),
        *_three_steps(q, e),
        Bars(
            key="mass_on_b",
            title="How much of the result is B",
            names=list(masses),
            values=[float(mass) for mass in masses.values()],
            note="Attention is biased towards what it asks for.",
        ),
    ]


def _asked(q: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Weights and outputs of a query, a row for each base."""
    found = [ask(q, e, base=base)[1:] for base in BASES.values()]
    return torch.stack([weights for weights, _ in found]), torch.stack([output for _, output in found])


def _three_steps(q: Tensor, e: Tensor, suffix: str = "") -> list[Panel]:
    weights, outputs = _asked(q, e)
    step_2 = "weights_i = b^score_i / sum_j b^score_j        b = 3, b = e"
    return [
        numbers(
            f"scores{suffix}", ask(q, e)[0], "score_i = k_i . q", title="Step 1: scores", rows=["score"], columns=PLACES
        ),
        numbers(
            f"weights{suffix}",
            weights,
            step_2,
            title="Step 2: softmax",
            rows=list(BASES),
            columns=PLACES,
            note=f"In base 3: {fractions(weights[0])}.",
        ),
        numbers(
            f"output{suffix}",
            outputs,
            "output = sum_i weights_i e_i",
            title="Step 3: the weighted sum",
            rows=list(BASES),
            columns=SIDES,
            note=f"In base 3: {fractions(outputs[0])}.",
        ),
    ]


def _sharper(e: Tensor) -> Sequence[Panel]:
    q = tensor([0, 10])
    weights, outputs = _asked(q, e)
    return [
        numbers("q10", q, "q = 10 B", title="A query ten times as long", rows=["q"], columns=SIDES),
        *_three_steps(q, e, "_q10"),
        answer(
            "What if q = [0, 10]?",
            "All scores grow tenfold, and the softmax turns from a preference into a choice. The B gets "
            f"{fractions(outputs[0, 1])} of the weight in base 3 and {short(outputs[1, 1])} in base e. Rounded, "
            f"the weights are {listed(weights[1].round())} and the output is {listed(outputs[1].round())}, B itself.",
        ),
    ]


def _decoupled(e: Tensor) -> Sequence[Panel]:
    w_k, w_q, target = IDENTITY, 10 * IDENTITY, embedded("B")[0]
    keys, query = e @ w_k, w_q @ target
    return [
        text(
            "Keys and query need not be the embeddings. Each gets a matrix: W_K makes the keys, W_Q makes the query of "
            "whatever is looked for.",
            "Keys and query of their own",
        ),
        numbers("W_K", w_k, "W_K", title="For the keys", rows=SIDES, columns=SIDES),
        numbers("W_Q", w_q, "W_Q", title="For the query", rows=SIDES, columns=SIDES),
        numbers("decoupled_keys", keys, "E W_K        (4 x 2)", title="Keys", rows=PLACES, columns=SIDES),
        numbers("decoupled_query", query, "W_Q e_B        (2 x 1)", title="Query", rows=["q"], columns=SIDES),
        numbers(
            "decoupled_scores",
            ask(query, keys)[0],
            "(E W_K) (W_Q e_B)        (4 x 2) (2 x 1) = (4 x 1)",
            title="Scores",
            rows=["score"],
            columns=PLACES,
            note="The same scores as with q = [0, 10]: the length of the query now sits in W_Q.",
        ),
    ]


def _self_attention(e: Tensor) -> Sequence[Panel]:
    seen = look(head(IDENTITY, IDENTITY, IDENTITY), e)
    return [
        text(
            "Now every letter asks. Each e_i becomes a query and gets a new vector e'_i: n letters go in, n vectors "
            "come out. With W_Q = W_K = I all of Q, K and V are E.",
            "Self-attention",
        ),
        numbers("S", seen.scores, "S = Q K^T = E E^T", title="Scores", rows=PLACES, columns=PLACES),
        *_weights_and_outputs(e, IDENTITY, "self"),
        heat("self_heat", seen.weights, "Who looks at whom, base e", PLACES, PLACES),
    ]


def _weights_and_outputs(e: Tensor, w_k: Tensor, prefix: str) -> list[Panel]:
    panels: list[Panel] = []
    for name, base in BASES.items():
        seen, key = look(head(IDENTITY, w_k, IDENTITY, base=base), e), name.replace(" ", "_")
        for part, values, equation, columns, title in (
            ("weights", seen.weights, "weights = softmax(S)", PLACES, "Weights"),
            ("outputs", seen.outputs, "E' = weights V", SIDES, "New vectors"),
        ):
            note = f"An A: {fractions(values[0])}. The B: {fractions(values[2])}." if base else ""
            panels.append(
                numbers(
                    f"{prefix}_{part}_{key}",
                    values,
                    equation,
                    title=f"{title}, {name}",
                    rows=PLACES,
                    columns=columns,
                    note=note,
                )
            )
    return panels


def _ten_times(e: Tensor) -> Sequence[Panel]:
    w_k = 10 * IDENTITY
    seen = look(head(IDENTITY, w_k, IDENTITY), e)
    column = look(head(tensor([[1], [1]]), tensor([[10], [10]]), tensor([[1], [1]])), e)
    return [
        numbers("ten_W_K", w_k, "W_Q = I    W_K = 10 I", title="Sharper self-attention", rows=SIDES, columns=SIDES),
        numbers("ten_K", seen.keys, "K = E W_K", title="Keys", rows=PLACES, columns=SIDES),
        numbers("ten_S", seen.scores, "S = Q K^T = 10 E E^T", title="Scores", rows=PLACES, columns=PLACES),
        *_weights_and_outputs(e, w_k, "ten"),
        numbers(
            "column_S",
            column.scores,
            "S with a column of ones for W_Q and one of tens for W_K (2 x 1)",
            title="Another reading of the notes",
            rows=PLACES,
            columns=PLACES,
        ),
        answer(
            "The notes print 1, 1 and 10, 10 as columns. Are these the matrices?",
            "They are their diagonals. Read as columns they make every score 10, and nobody could tell an A from a B.",
        ),
    ]


def _all_strings(e: Tensor) -> Sequence[Panel]:
    strings = ["".join(letters) for letters in itertools.product(LETTERS, repeat=4)]
    x = torch.stack([embedded(string) for string in strings])
    readers = {"average": MeanConfig(2).build().double()(x)[0][:, -1]}
    for length, (name, base) in itertools.product((1, 10), BASES.items()):
        # Both letters ask the same question, so that the last one reads the whole string.
        readers[f"q{length} {name}"] = head(tensor([[0, length]] * 2), IDENTITY, IDENTITY, base=base)(x)[0][:, -1]
    wanted = torch.tensor(["B" in string for string in strings])
    answered = {
        name: int(torch.where(wanted, y[:, 1] > y[:, 0], y[:, 0] > y[:, 1]).sum())
        for name, y in readers.items()
        if "base 3" not in name
    }
    last = look(head(IDENTITY, IDENTITY, IDENTITY), e).outputs[-1]
    return [
        answer(
            "Does self-attention with W_Q = I solve the task?",
            f"No. The last letter of A A B A is an A, it asks for As and gets {listed(last)}. In reality W_Q is "
            "learned: it makes every letter ask for what is needed.",
        ),
        numbers(
            "solution_W_Q", tensor([[0, 10]] * 2), "W_Q", title="Both letters ask for B", rows=SIDES, columns=SIDES
        ),
        numbers(
            "solution",
            readers["q10 base e"],
            "e'_4",
            title="The new vector of the last letter, for all 16 strings",
            rows=strings,
            columns=SIDES,
        ),
        numbers(
            "masses",
            torch.stack([y[:, 1] for y in readers.values()], 1),
            "q1 = [0, 1]    q10 = [0, 10]",
            title="How much of the result is B",
            rows=strings,
            columns=list(readers),
        ),
        Bars(
            key="right",
            title="Strings answered right, of 16",
            names=list(answered),
            values=list(answered.values()),
            unit="strings",
            note="The larger side of the result is the answer; a tie is wrong.",
        ),
    ]


def _longer() -> Sequence[Panel]:
    queries = {"average": None, "q = [0, 1]": tensor([0, 1]), "q = [0, 10]": tensor([0, 10])}
    lines = {name: [(float(n), _single_b(n, q)) for n in LENGTHS] for name, q in queries.items()}
    first, last = 4, LENGTHS[-1]
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if _single_b(middle, tensor([0, 10])) > 0.5 else (first, middle)
    sizes = (4, 8, 16)
    counts = [look(head(IDENTITY, IDENTITY, IDENTITY), embedded("A" * n)).scores.numel() for n in sizes]
    return [
        Curves(
            key="mass_by_length", title="One B among ever more As", lines=dict(lines), x="length", y="B", x_log=True
        ),
        numbers("majority_lost", tensor([last]), "B <= 1/2", title="The first length at which q = [0, 10] loses the B"),
        answer(
            "Can a sharp query find one B in any string?",
            f"No. Many small weights add up: with q = [0, 10] the As together outweigh the B from length {last} on.",
        ),
        numbers("cost", tensor(counts), "n x n scores", title="What it costs", columns=[f"n = {n}" for n in sizes]),
        answer("How does the cost grow?", "Quadratically: every letter asks every letter."),
    ]


def _single_b(length: int, query: Tensor | None) -> float:
    """How much of the result is B where the string has one, by a query or by the average."""
    e = embedded("A" * (length - 1) + "B")
    return float((averaged(e) if query is None else ask(query, e)[2])[1])
