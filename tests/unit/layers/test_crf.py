"""The chain of tags and the head of it against every way to tag a sentence, in float64."""

from __future__ import annotations

import pytest
import torch

from enumerated import Ways, chain_score
from regard.core.inputs import NOT_COUNTED
from regard.errors import UsageError
from regard.layers.crf import Chain, CrfHead, log_chances, log_partition, log_score, viterbi

TAGS, LENGTHS = 3, (4, 1, 3, 2)


@pytest.fixture
def given() -> tuple[torch.Tensor, torch.Tensor, Chain]:
    torch.manual_seed(3)
    drawn = [torch.randn(*shape, dtype=torch.float64) for shape in ((4, 4, TAGS), (TAGS, TAGS), (TAGS,), (TAGS,))]
    return drawn[0], torch.tensor(LENGTHS), Chain(*drawn[1:])


def ways(emissions: torch.Tensor, row: int, length: int, chain: Chain) -> Ways:
    return Ways(length, TAGS, chain_score(emissions[row], chain.between, chain.start, chain.end))


def test_sums_best_tags_and_chances_are_those_of_every_way_to_tag(given: tuple[torch.Tensor, torch.Tensor, Chain]):
    emissions, lengths, chain = given
    log_z, best = log_partition(emissions, lengths, chain), viterbi(emissions, lengths, chain)
    chances = log_chances(emissions, lengths, chain).exp()
    for row, length in enumerate(LENGTHS):
        every = ways(emissions, row, length, chain)
        assert torch.allclose(log_z[row], every.log_z, atol=1e-12)
        assert best[row].tolist() == every.best + [0] * (4 - length)
        assert torch.allclose(chances[row, :length], every.chances, atol=1e-12)
        scored = log_score(emissions, best, lengths, chain)[row]
        assert torch.allclose(scored, every.scores.max(), atol=1e-12)


def test_what_stands_in_the_padding_reaches_nothing(given: tuple[torch.Tensor, torch.Tensor, Chain]):
    emissions, lengths, chain = given
    other = emissions.clone()
    for row, length in enumerate(LENGTHS):
        other[row, length:] = 1e30
    assert torch.equal(log_partition(other, lengths, chain), log_partition(emissions, lengths, chain))
    assert torch.equal(viterbi(other, lengths, chain), viterbi(emissions, lengths, chain))
    real = torch.arange(4) < lengths[:, None]
    assert torch.equal(log_chances(other, lengths, chain)[real], log_chances(emissions, lengths, chain)[real])


def test_what_is_forbidden_is_never_chosen(given: tuple[torch.Tensor, torch.Tensor, Chain]):
    emissions, lengths, chain = given
    forbidden = torch.zeros(TAGS, TAGS, dtype=torch.float64)
    forbidden[0, 1] = forbidden[2, 2] = -torch.inf
    narrow = chain + Chain(forbidden, torch.tensor([-torch.inf, 0, 0]), torch.zeros(TAGS))
    for row, length in enumerate(LENGTHS):
        assert viterbi(emissions, lengths, narrow)[row, :length].tolist() == ways(emissions, row, length, narrow).best


@pytest.fixture
def head() -> CrfHead:
    torch.manual_seed(5)
    made = CrfHead(6, TAGS).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def test_the_loss_is_minus_log_p_and_leaves_out_what_has_no_tag(head: CrfHead):
    vectors = torch.randn(3, 5, 6, dtype=torch.float64)
    targets = torch.full((3, 5), NOT_COUNTED)
    counted = {0: [0, 2, 3], 1: [1], 2: []}
    tags = {0: [2, 0, 1], 1: [1], 2: []}
    for row, places in counted.items():
        targets[row, places] = torch.tensor(tags[row], dtype=torch.long)
    expected = torch.zeros((), dtype=torch.float64)
    chain = head.chain()
    for row in (0, 1):
        emissions = head(vectors)[row, counted[row]]
        score = chain_score(emissions, chain.between, chain.start, chain.end)
        expected += Ways(len(tags[row]), TAGS, score).log_z - score(tuple(tags[row]))
    assert torch.allclose(head(vectors, targets), expected, atol=1e-12)


def test_gradients_are_those_of_differences():
    torch.manual_seed(8)
    head = CrfHead(2, TAGS).double()
    vectors = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[0, 2, NOT_COUNTED], [1, 1, 2]])
    inputs = (vectors, head.weight, head.bias, head.between, head.start, head.end)
    assert torch.autograd.gradcheck(lambda *_: head(vectors, targets), inputs)


def test_a_row_beside_others_is_the_row_alone(head: CrfHead):
    vectors, lengths = torch.randn(3, 4, 6, dtype=torch.float64), torch.tensor([4, 2, 1])
    best = head.decode(vectors, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = head.decode(vectors[row : row + 1, :length], torch.tensor([length]))
        assert best[row, :length].tolist() == alone[0].tolist()


def test_label_smoothing_is_refused(head: CrfHead):
    with pytest.raises(UsageError, match="label_smoothing"):
        head(torch.randn(1, 2, 6, dtype=torch.float64), torch.tensor([[0, 1]]), 0.1)
