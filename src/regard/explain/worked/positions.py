"""Where a word stands: sinusoids, rotations, linear biases and learned rows.

PE[p, 2k] = sin(p / 10000^(2k/d)),  PE[p, 2k+1] = cos(the same)        Vaswani et al. 2017, 3.5
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.tap import record
from regard.errors import UsageError
from regard.explain.view import Curves, Heat, Panel, View
from regard.explain.worked.sheet import answer, array, formula, heat, numbers, sheet, short, tensor, text
from regard.layers.position import PositionConfig, RotaryConfig, alibi_slopes, rotate, sinusoids
from regard.mixers.attention import AttentionConfig

WIDTH, BASE = 8, 10000.0
PLACES = [f"p = {p}" for p in range(6)]
Q, K = tensor([1.0, 0.5, -0.25, 2.0]), tensor([0.3, -1.0, 0.8, 0.4])
# Positions of a query and of a key.
PAIRS = ((2, 5), (0, 3), (7, 10), (5, 2), (0, 0))
# (x_0, x_2) and (x_1, x_3) side by side, and back.
HALVES = torch.tensor([0, 2, 1, 3])


def view() -> View:
    parts = (_sinusoids, _shift, _rotary, _halves, _alibi, _learned)
    return sheet("positions", "Where a word stands", *(part() for part in parts))


def _sinusoids() -> Sequence[Panel]:
    table = sinusoids(torch.arange(6), WIDTH)
    divisors = tensor([BASE ** (2 * k / WIDTH) for k in range(WIDTH // 2)])
    long = sinusoids(torch.arange(32), WIDTH)
    lines = {
        f"{name} k = {k}": [(float(p), float(value)) for p, value in enumerate(long[:, 2 * k + odd])]
        for k in range(2)
        for odd, name in enumerate(("sin", "cos"))
    }
    return [
        text(
            "Attention does not know where a word stands. A sinusoidal encoding adds a vector that is a function of "
            "the position, so that it exists at any position.",
            "Sinusoids",
        ),
        formula("PE[p, 2k] = sin(p / 10000^(2k/d))    PE[p, 2k+1] = cos(p / 10000^(2k/d))    d = 8"),
        numbers(
            "divisors", divisors, "10000^(2k/d)", title="Slower and slower", columns=[f"k = {k}" for k in range(4)]
        ),
        numbers(
            "sinusoids",
            table,
            "PE[p]",
            title="Six positions",
            rows=PLACES,
            columns=[f"{name} {k}" for k in range(4) for name in ("sin", "cos")],
        ),
        Curves(key="waves", title="The first four columns over 32 positions", lines=dict(lines), x="position", y="PE"),
        numbers(
            "gram", table @ table.T, "PE PE^T", title="Every position with every other", rows=PLACES, columns=PLACES
        ),
        Heat(
            key="gram_heat",
            title="The same over 32 positions",
            weights=array(long @ long.T),
            row_name="position",
            column_name="position",
            high=WIDTH / 2,
            scale="dot product",
            note="Equal along diagonals: it depends on the distance alone.",
        ),
    ]


def _shift() -> Sequence[Panel]:
    # rotate() turns pairs (cos, sin); the encoding has the sine first.
    cosine_first = sinusoids(torch.arange(6), WIDTH).unflatten(-1, (4, 2)).flip(-1).flatten(-2)
    turned = rotate(cosine_first[:4][None, :, None], torch.full((1, 4), 2))[0, :, 0]
    gap = (turned - cosine_first[2:]).abs().max()
    return [
        formula("PE(p + k) = M_k PE(p)", title="A shift is a rotation"),
        answer(
            "Can a net compute 'two to the left' from it?",
            "Yes, by one matrix for all positions: M_2 turns every pair by a fixed angle. Turning positions 0 to 3 "
            f"gives positions 2 to 5, to within {short(gap)}.",
        ),
    ]


def turned(vector: Tensor, position: int) -> Tensor:
    return rotate(vector[None, None, None], torch.tensor([[position]]), RotaryConfig(BASE))[0, 0, 0]


def _rotary() -> Sequence[Panel]:
    dots = torch.stack([turned(Q, m) @ turned(K, n) for m, n in PAIRS])
    columns = ["1", "2", "3", "4"]
    return [
        text(
            "RoPE turns queries and keys instead of adding to them: each pair of coordinates by an angle that grows "
            "with the position.",
            "Rotations (RoPE)",
        ),
        formula("(x_2k, x_2k+1) turned by p / 10000^(2k/d)    d = 4"),
        numbers("rope_qk", torch.stack([Q, K]), "q, k", title="A query and a key", rows=["q", "k"], columns=columns),
        numbers(
            "rope_turned",
            torch.stack([turned(Q, 2), turned(K, 5)]),
            "R_2 q, R_5 k",
            title="At positions 2 and 5",
            rows=["q at 2", "k at 5"],
            columns=columns,
        ),
        numbers(
            "rope_dots",
            dots,
            "(R_m q) . (R_n k)",
            title="Their dot products",
            rows=["dot"],
            columns=[f"{m}, {n}" for m, n in PAIRS],
            note="2, 5 and 0, 3 and 7, 10 are the same distance and the same number; 5, 2 looks the other way.",
        ),
        answer(
            "What does the score depend on?", "On n - m alone: how far the key is from the query, and on which side."
        ),
    ]


def _halves() -> Sequence[Panel]:
    def half(vector: Tensor, position: int) -> Tensor:
        return turned(vector[HALVES], position)[HALVES]

    dots = torch.stack([half(Q, m) @ half(K, n) for m, n in PAIRS[:2]])
    return [
        numbers(
            "rope_halves",
            torch.stack([half(Q, 2), half(K, 5)]),
            "pairs (x_1, x_3) and (x_2, x_4)",
            title="Another convention: the halves are the pairs",
            rows=["q at 2", "k at 5"],
            columns=["1", "2", "3", "4"],
        ),
        numbers(
            "rope_halves_dots",
            dots,
            "(R_m q) . (R_n k)",
            title="Their dot products",
            rows=["dot"],
            columns=[f"{m}, {n}" for m, n in PAIRS[:2]],
            note="Other numbers, the same property. Weights trained with one convention are wrong in the other.",
        ),
    ]


def _alibi() -> Sequence[Panel]:
    mixer = AttentionConfig(8, 8, position="alibi", bias=False).build().double()
    torch.nn.init.zeros_(mixer.input_to_heads.weight)  # no queries and keys: only the biases are left
    with record(mixer) as seen:
        mixer(torch.zeros(1, 4, 8, dtype=torch.float64))
    scores, weights = seen["scores"][0][0], seen["weights"][0][0]  # (H, T, S)
    ahead = ~torch.ones(4, 4, dtype=torch.bool).tril()
    places = ["1", "2", "3", "4"]
    queries = [f"q_{n}" for n in places]
    return [
        text("ALiBi takes something off every score, the more the farther the key is. Nothing is learned.", "ALiBi"),
        formula("score_ij = q_i . k_j - m (i - j)    j <= i", "m = 2^(-8 h / H) for head h of H"),
        numbers(
            "alibi_slopes_8",
            alibi_slopes(8),
            "m",
            title="Slopes of 8 heads",
            columns=[f"head {h}" for h in range(1, 9)],
        ),
        numbers(
            "alibi_slopes_4",
            alibi_slopes(4),
            "m",
            title="Slopes of 4 heads",
            columns=[f"head {h}" for h in range(1, 5)],
        ),
        numbers(
            "alibi_bias",
            scores[0].masked_fill(ahead, torch.nan),
            "- m (i - j)    m = 1/2",
            title="What is added in the first of 8 heads",
            rows=queries,
            columns=[f"k_{n}" for n in places],
        ),
        numbers(
            "alibi_row_4",
            torch.stack([weights[0, 3], weights[7, 3]]),
            "softmax(- m (4 - j))",
            title="Weights of position 4 where all q . k are 0",
            rows=["m = 1/2", "m = 1/256"],
            columns=places,
        ),
        heat("alibi_heat", weights[0], "The steepest head looks near", queries, [f"k_{n}" for n in places]),
    ]


def _learned() -> Sequence[Panel]:
    table = PositionConfig(2, "learned", 4).build()
    try:
        table(torch.tensor([2]), 3)
        said = ""
    except UsageError as error:
        said = str(error)
    return [
        formula("emb_i = c_i + p_i    p a table of max_length x d", title="Learned rows"),
        answer(
            "What happens beyond the last row?",
            f'There is none. A table of 4 rows, asked for position 4: "{said}".',
        ),
        answer(
            "And beyond the lengths seen in training?",
            "Sinusoids, rotations and ALiBi are defined everywhere. That a model still works there is another matter, "
            "which has to be measured.",
        ),
    ]
