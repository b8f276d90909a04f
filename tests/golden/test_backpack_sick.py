"""Which sense of "sick" is meant in "that trick was sick", and the log-linearity of a Backpack (backpack_sick.json)."""

from __future__ import annotations

import pytest
import torch
from exact import load, same, tensor
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.mixer import Mixer
from regard.core.model import logits_of
from regard.core.registry import build
from regard.core.stack import StackConfig
from regard.core.state import Position, State, advance, zero_position
from regard.core.tap import record
from regard.layers.score import build_score, softmax
from regard.mixers.mean import MeanConfig
from regard.mixers.senses import Senses, SensesConfig
from regard.mixers.window import WindowConfig

GOLDEN = load("backpack_sick")
WORDS = GOLDEN["sentence"].split()
SENSES = tensor([GOLDEN["given"]["sense_vectors"][word] for word in WORDS])  # (T, C, D)
CONTEXT = tensor([GOLDEN["context_sum_u_i"]["values"][word] for word in WORDS])  # (T, D)


def matches(senses: Tensor, context: Tensor) -> Tensor:
    """m_li = C(x_i)_l . u_i by the dot score, each sense a head; (T, C)."""
    queries = context[None, :, None].expand(-1, -1, senses.shape[1], -1)
    scores = build_score("dot", senses.shape[1], senses.shape[2])(queries, senses[None])  # (1, C, T, S)
    return scores[0].diagonal(dim1=1, dim2=2).T


def sentiment(vector: Tensor) -> Tensor:
    return vector[..., 0] - vector[..., 1]


def test_context_sums_leave_out_the_word_itself() -> None:
    per_word = SENSES.sum(1)
    same(per_word.sum(0) - per_word, CONTEXT)


def test_linear_reading_picks_the_sense_that_matches_the_context() -> None:
    golden = GOLDEN["reading_1_linear"]
    alpha = matches(SENSES, CONTEXT)
    same(alpha, [GOLDEN["match_scores"]["values"][word] for word in WORDS], tolerance=0)
    output = torch.einsum("TC,TCD->TD", alpha, SENSES)
    same(output, [golden["output_by_word"][word] for word in WORDS], tolerance=0)
    same(output.sum(0), golden["sum_over_words"], tolerance=0)
    same(sentiment(output[-1]), golden["sentiment_of_sick"], tolerance=0)
    same(output[-1], GOLDEN["expected_selection"]["output"], tolerance=0)


def test_linear_reading_of_the_contrast() -> None:
    golden = GOLDEN["contrast_own_example"]
    senses = SENSES.clone()
    senses[1] = tensor(golden["extra_sense_vector"]["nurse"])
    context = senses.sum(1).sum(0) - senses.sum(1)
    same(context[-1], golden["u_sick"], tolerance=0)
    alpha = matches(senses, context)
    same(alpha[-1], golden["match_scores_sick"], tolerance=0)
    output = alpha[-1] @ senses[-1]
    same(output, golden["output_linear"], tolerance=0)
    same(sentiment(output), golden["sentiment"], tolerance=0)


@pytest.mark.parametrize("beta", [1, 5, 10, 100])
def test_softmax_over_senses(beta: int) -> None:
    golden = GOLDEN["reading_3_softmax_over_senses"]["by_beta"][str(beta)]
    alpha = softmax(beta * matches(SENSES, CONTEXT))
    same(alpha, golden["alpha_by_word"])
    output = torch.einsum("TC,TCD->TD", alpha, SENSES)
    same(output, golden["output_by_word"])
    same(sentiment(output[-1]), golden["sentiment_of_sick"])
    same(sentiment(output[-1]), tensor(beta / 2).tanh())


@pytest.mark.parametrize("beta", [1, 10])
def test_softmax_over_senses_and_words_together(beta: int) -> None:
    golden, senses = GOLDEN["reading_5_joint_softmax_without_mask"][f"beta_{beta}"], SENSES.flatten(0, 1)
    query = (beta * CONTEXT[-1]).reshape(1, 1, 1, 4)
    alpha = softmax(build_score("dot", 1, 4)(query, senses[None, :, None]))[0, 0, 0]
    same(alpha, golden["alpha"])
    same(alpha @ senses, golden["output"])


class Unchanged(Mixer):
    """A context that leaves every vector as it is."""

    def init_state(self, batch_size: int) -> State:
        return Position(zero_position(batch_size))

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        return x, Position(advance(state.position, x.shape[1], context.lengths))


class SenseTable(nn.Module):
    """Senses looked up by one-hot inputs; (B, T, D) to (B, T, C, D)."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table)

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("BTW,WCD->BTCD", x[..., : len(self.table)], self.table)


def sick_mixer(b: float) -> Senses:
    """The mixer of the package with the queries, keys and senses of reading 4, on one-hot words of width 10.

    query of word i and sense l: (B m_li onehot(i), B / 2);  key of word j: (onehot(j), both its senses are zero).
    """
    width, d_key, n_words = 10, 5, len(WORDS)
    mixer = SensesConfig(width, StackConfig(width, (WindowConfig(width, 1),)), 2).build().double()
    mixer.context, mixer.context_norm = Unchanged(), nn.Identity()
    mixer.senses = SenseTable(torch.cat([SENSES, torch.zeros(n_words, 2, width - 4)], -1))
    onehot = torch.eye(n_words, dtype=torch.float64)
    zero_word = (SENSES == 0).all(-1).all(-1).double()
    queries = torch.cat(
        [b * onehot[:, None] * matches(SENSES, CONTEXT)[..., None], torch.full((n_words, 2, 1), b / 2)], -1
    )
    keys = torch.cat([onehot, zero_word[:, None]], -1)[:, None].expand(-1, 2, -1)
    # The mixer divides scores by the root of the key width.
    match = torch.stack([queries * d_key**0.5, keys], 1).flatten(1)  # (T, 2 x 10)
    weight = torch.cat([match, torch.zeros(width - n_words, 2 * width)]).T
    mixer.context_to_match.load_state_dict({"weight": weight, "bias": torch.zeros(2 * width)})
    return mixer


@pytest.mark.parametrize("b", [10, 20, 50])
def test_softmax_of_each_sense_over_positions_by_the_mixer(b: int) -> None:
    golden = GOLDEN["reading_4_per_sense_softmax_over_positions"]["by_B"][str(b)]
    mixer, words = sick_mixer(b), torch.eye(len(WORDS), 10, dtype=torch.float64)
    for i in range(len(WORDS)):
        # The golden rows look at the whole sentence, the mixer at the past: each word in turn is put last.
        order = torch.tensor([j for j in range(len(WORDS)) if j != i] + [i])
        with record(mixer) as seen:
            y = mixer(words[order][None])[0][0, -1]
        alpha = tensor(golden["alpha[sense][i][j]"])[:, i, order]  # (C, S)
        same(seen["sense_weights"][0][0, :, -1], alpha)
        same(seen["sense_vectors"][0][0, :, :, :4], SENSES[order])
        same(y[:4], golden["output_by_word"][i])
        if WORDS[i] == "sick":
            same(sentiment(y), golden["sentiment_of_sick"])


def test_one_sense_with_even_weights_is_a_bag_of_words() -> None:
    mixer = SensesConfig(8, StackConfig(8, (WindowConfig(8, 2),)), 1).build().double()
    for parameter in mixer.context_to_match.parameters():
        nn.init.zeros_(parameter)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    with record(mixer, "sense_vectors") as seen:
        y = mixer(x)[0]
    same(y, MeanConfig(8).build().double()(seen["sense_vectors"][0][:, :, 0])[0])


def heard_backpack() -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    """A random Backpack, tokens, and the logits that every sense of every word adds at every position.

    The last one is alpha_lij times E C(x_j)_l, (B, T, S, C, V).
    """
    model = build("backpack", vocab_size=11, size="tiny").double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    tokens = torch.randint(11, (2, 7))
    with record(model) as seen:
        logits = logits_of(model, tokens)
    vectors, weights = seen["stack.sense_vectors"][0], seen["stack.sense_weights"][0]
    each = torch.einsum("BSCD,VD->BSCV", vectors, model.head.weight)
    return model, tokens, logits, torch.einsum("BCTS,BSCV->BTSCV", weights, each)


def test_backpack_logits_are_the_weighted_sum_of_the_logits_of_senses() -> None:
    _, _, logits, parts = heard_backpack()
    assert float(logits.detach().std()) > 0.1
    same(parts.sum((2, 3)), logits.detach(), tolerance=1e-10)


def test_turning_a_sense_down_changes_the_logits_by_a_known_amount() -> None:
    model, tokens, logits, parts = heard_backpack()

    def dampen(_tap: nn.Module, _inputs: object, vectors: Tensor) -> Tensor:
        return vectors * tensor([1, 1, 0.25, 1])[:, None]

    handle = model.stack.sense_vectors.register_forward_hook(dampen)
    try:
        changed = logits_of(model, tokens)
    finally:
        handle.remove()
    same(changed - logits, -0.75 * parts[:, :, :, 2].sum(2).detach(), tolerance=1e-10)
