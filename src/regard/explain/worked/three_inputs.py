"""Self-attention over three inputs: what each of them asks, what it finds, and the vector it becomes.

Q = X W_Q,  K = X W_K,  V = X W_V        S = Q K^T        A = softmax(S)        O = A V
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.explain.view import Panel, View
from regard.explain.worked.head import Looked, ask, head, look
from regard.explain.worked.sheet import answer, heat, listed, numbers, sheet, short, tensor, text
from regard.layers.score import build_score

X = tensor([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
W_K = tensor([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
W_V = tensor([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
W_Q = tensor([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
# As on the slides, rounded by hand.
PUBLISHED = tensor([[0, 0.5, 0.5], [0, 1, 0], [0, 0.9, 0.1]])
INPUTS = ["input 1", "input 2", "input 3"]
PLACES = ["1", "2", "3"]
ORDER = torch.tensor([2, 0, 1])


def view() -> View:
    seen = look(head(W_Q, W_K, W_V), X)
    return sheet(
        "three-inputs",
        "Self-attention over three inputs",
        _given(),
        _roles(seen),
        _one_input(seen, 0),
        _one_input(seen, 1),
        _one_input(seen, 2),
        _published(seen),
        _at_once(seen),
        _scaled(seen),
        _cosines(),
        _order(seen),
    )


def most_related(weights: Tensor) -> list[int]:
    """The inputs of the largest weight, from 1 on; several where they tie."""
    return [place + 1 for place in (weights >= weights.max() - 1e-12).nonzero().flatten().tolist()]


def _given() -> Sequence[Panel]:
    learned = head(W_Q, W_K, W_V).input_to_heads.weight
    matrices = learned.shape[0] // W_Q.shape[1]
    rows = [f"x_{n}" for n in range(1, 5)]
    return [
        numbers("X", X, "X", title="Three inputs of width 4", rows=INPUTS, columns=rows),
        text(
            "The slides show the matrices and the scores 2, 4, 4 but not the inputs. These are the ones commonly used "
            "with them, and they give those scores."
        ),
        numbers("W_K", W_K, "W_K", title="Weights of the keys", rows=rows, columns=PLACES),
        numbers("W_V", W_V, "W_V", title="Weights of the values", rows=rows, columns=PLACES),
        numbers("W_Q", W_Q, "W_Q", title="Weights of the queries", rows=rows, columns=PLACES),
        numbers(
            "learned",
            tensor([matrices, learned.numel()]),
            "W_Q, W_K, W_V",
            title="Learned",
            columns=["matrices", "numbers"],
        ),
        answer(
            "How many weight matrices are learned here?",
            f"{matrices}, each of {W_Q.shape[0]} x {W_Q.shape[1]}: {learned.numel()} numbers in all.",
        ),
        answer(
            "Why three?",
            "Every input plays three roles. Its query asks, its key is found by the queries of others, and its value "
            "is what it delivers to those who found it.",
        ),
    ]


def _roles(seen: Looked) -> Sequence[Panel]:
    return [
        numbers("K", seen.keys, "K = X W_K", title="Keys", rows=INPUTS, columns=PLACES),
        numbers("V", seen.values, "V = X W_V", title="Values", rows=INPUTS, columns=PLACES),
        numbers("Q", seen.queries, "Q = X W_Q", title="Queries", rows=INPUTS, columns=PLACES),
    ]


def _one_input(seen: Looked, place: int) -> Sequence[Panel]:
    n = place + 1
    scores, weights, output = ask(seen.queries[place], seen.keys, seen.values)
    related = most_related(weights)
    found = f"input {related[0]}" if len(related) == 1 else f"inputs {' and '.join(map(str, related))}, which tie"
    itself = ", itself" if related == [n] else ""
    return [
        numbers(
            f"scores_{n}",
            scores,
            f"s_j = q_{n} . k_j",
            title=f"Input {n}: scores",
            rows=[f"q_{n}"],
            columns=[f"k_{j}" for j in PLACES],
        ),
        numbers(
            f"weights_{n}", weights, "a = softmax(s)", title=f"Input {n}: weights", rows=["weight"], columns=INPUTS
        ),
        answer(f"To which input is input {n} most related?", f"To {found}{itself}."),
        numbers(
            f"weighted_{n}",
            weights[:, None] * seen.values,
            "a_j v_j",
            title=f"Input {n}: values, each times its weight",
            rows=INPUTS,
            columns=PLACES,
            note="A large weight lets a value through, a small one holds it back.",
        ),
        numbers(
            f"output_{n}",
            output,
            f"o_{n} = a_1 v_1 + a_2 v_2 + a_3 v_3",
            title=f"Input {n}: the sum is its new vector",
            rows=[f"output {n}"],
            columns=PLACES,
        ),
    ]


def _published(seen: Looked) -> Sequence[Panel]:
    outputs = PUBLISHED @ seen.values
    gaps = (outputs - seen.outputs).abs().max(1).values
    return [
        numbers(
            "published_weights",
            PUBLISHED,
            "A, rounded",
            title="The weights as they are published",
            rows=INPUTS,
            columns=PLACES,
            note="Rounded by hand, so that one can go on without a calculator.",
        ),
        numbers(
            "published_weighted",
            PUBLISHED[0][:, None] * seen.values,
            "a_j v_j",
            title="Input 1: values, each times its weight",
            rows=INPUTS,
            columns=PLACES,
        ),
        numbers("published_outputs", outputs, "O = A V", title="What they give", rows=INPUTS, columns=PLACES),
        numbers(
            "published_gap",
            gaps,
            "max |published - true|",
            title="How far the rounding is from the true outputs",
            rows=["gap"],
            columns=INPUTS,
        ),
        answer(
            "Are 2, 7, 1.5 the numbers of output 1?",
            f"Only roughly. The true ones are {listed(seen.outputs[0])}; rounding the weights moved one of them by "
            f"{short(gaps[0])}.",
        ),
    ]


def _at_once(seen: Looked) -> Sequence[Panel]:
    return [
        text("Nothing in one row waits for another row: three matrix products do all inputs at once.", "All at once"),
        numbers("scores", seen.scores, "S = Q K^T", title="Scores", rows=INPUTS, columns=PLACES),
        numbers("weights", seen.weights, "A = softmax(S)", title="Weights", rows=INPUTS, columns=PLACES),
        heat("heat", seen.weights, "Who looks at whom", INPUTS, INPUTS, "Darker is more."),
        numbers("outputs", seen.outputs, "O = A V", title="Outputs", rows=INPUTS, columns=PLACES),
    ]


def _scaled(seen: Looked) -> Sequence[Panel]:
    scaled = look(head(W_Q, W_K, W_V, score="scaled_dot"), X)
    even = torch.stack([_effective(seen.weights), _effective(scaled.weights)])
    return [
        text("The Transformer divides the scores by the root of the width of the keys, here sqrt(3).", "Scaled"),
        numbers("scaled_scores", scaled.scores, "S = Q K^T / sqrt(3)", title="Scores", rows=INPUTS, columns=PLACES),
        numbers("scaled_weights", scaled.weights, "A = softmax(S)", title="Weights", rows=INPUTS, columns=PLACES),
        numbers("scaled_outputs", scaled.outputs, "O = A V", title="Outputs", rows=INPUTS, columns=PLACES),
        numbers(
            "effective",
            even,
            "exp(- sum_j a_j log a_j)",
            title="How many inputs are looked at, in effect",
            rows=["unscaled", "scaled"],
            columns=INPUTS,
            note="1 is a hard choice, 3 an even look at all. Smaller scores are a milder choice.",
        ),
    ]


def _effective(weights: Tensor) -> Tensor:
    """exp(entropy) of each row."""
    return torch.special.entr(weights).sum(-1).exp()


def _cosines() -> Sequence[Panel]:
    cosine = build_score("cosine", 1, 2).double()
    cosine.load_state_dict({"tau": torch.ones(1, 1)})
    others = tensor([[1, 0], [0, 1], [-1, 0]])
    cases = cosine(tensor([[1, 0]])[None, :, None], others[None, :, None])[0, 0, 0]
    found = look(head(W_Q, W_K, W_V, score="cosine"), X)
    return [
        numbers(
            "cosine_cases",
            cases,
            "cos(a, b) = a . b / (|a| |b|)",
            title="Why the dot product: it measures likeness",
            rows=["cosine"],
            columns=["the same", "at a right angle", "opposite"],
        ),
        numbers("cosines", found.scores, "cos(q_i, k_j)", title="Cosines here", rows=INPUTS, columns=PLACES),
        answer(
            "Is the dot product the cosine?",
            "Only for vectors of length 1. Here the key of input 2 is long and wins most dot products, though by "
            f"cosine input 1 is nearest to input {most_related(found.scores[0])[0]} and input 2 to input "
            f"{most_related(found.scores[1])[0]}.",
        ),
    ]


def _order(seen: Looked) -> Sequence[Panel]:
    shuffled = look(head(W_Q, W_K, W_V), X[ORDER])
    causal = look(head(W_Q, W_K, W_V, causal=True), X)
    causal_shuffled = look(head(W_Q, W_K, W_V, causal=True), X[ORDER])
    rows = [INPUTS[place] for place in ORDER.tolist()]
    same = bool((shuffled.outputs - seen.outputs[ORDER]).abs().max() < 1e-12)
    same_causal = bool((causal_shuffled.outputs - causal.outputs[ORDER]).abs().max() < 1e-12)
    return [
        numbers(
            "shuffled", shuffled.outputs, "O = A V", title="Outputs for the inputs 3, 1, 2", rows=rows, columns=PLACES
        ),
        answer(
            "Does the order of the inputs matter?",
            f"{'No' if same else 'Yes'}. Shuffled inputs give the same outputs, shuffled alike. Attention has no sense "
            "of order; positions have to be added.",
        ),
        numbers(
            "causal_weights",
            causal.weights,
            "A = softmax(S) over j <= i",
            title="With a causal mask",
            rows=INPUTS,
            columns=PLACES,
        ),
        numbers("causal_outputs", causal.outputs, "O = A V", title="Outputs", rows=INPUTS, columns=PLACES),
        numbers(
            "causal_shuffled",
            causal_shuffled.outputs,
            "O = A V",
            title="Outputs for 3, 1, 2",
            rows=rows,
            columns=PLACES,
        ),
        answer(
            "And with the mask?",
            f"{'No' if same_causal else 'Yes'}: who comes first sees less, so that each input gets another vector.",
        ),
    ]
