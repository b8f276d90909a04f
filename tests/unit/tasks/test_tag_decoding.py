"""Tags within the rule of BIO, whatever model answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from regard.core.fitted import FitSettings, Nobody
from regard.data.ragged import ragged
from regard.evaluation.tagging import span_scores
from regard.layers.crf import CrfHead
from regard.layers.head import LinearHead
from regard.models.hmm import HmmConfig
from regard.tasks.tag_decoding import best_tags, bio_chain, keeps_bio, lean_for, span_chain, tag_rows
from regard.tasks.vocabulary import letters

CLASSES = ("B-A", "B-B", "I-A", "I-B", "O")


class Headed(nn.Module):
    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([["O", "B-A", "I-A"], ["B-B"]], True),
        ([["O", "I-A"]], False),
        ([["B-B", "I-A"]], False),
        ([["I-A", "I-A"]], False),
        ([["NOUN", "VERB"]], False),
        ([["O", "O"]], False),
        ([], False),
    ],
)
def test_the_rule_is_kept_or_not(tags: list[list[str]], expected: bool):
    assert keeps_bio(tags) is expected


def test_the_rule_allows_what_it_says():
    chain = bio_chain(CLASSES)
    allowed = {(CLASSES[a], CLASSES[b]) for a in range(5) for b in range(5) if chain.between[a, b] == 0}
    inside = {("B-A", "I-A"), ("I-A", "I-A"), ("B-B", "I-B"), ("I-B", "I-B")}
    assert allowed == inside | {(a, b) for a in CLASSES for b in ("B-A", "B-B", "O")}
    assert [name for name, start in zip(CLASSES, chain.start.tolist(), strict=True) if start == 0] == [
        "B-A",
        "B-B",
        "O",
    ]


@pytest.mark.parametrize("kind", [LinearHead, CrfHead])
def test_answers_keep_the_rule_and_are_free_without_it(kind: type[nn.Module]):
    torch.manual_seed(6)
    model, vectors, lengths = Headed(kind(4, 5)), torch.randn(40, 7, 4), torch.randint(1, 8, (40,))
    with torch.no_grad():
        kept = best_tags(model, vectors, lengths, bio_chain(CLASSES))
        free = best_tags(model, vectors, lengths, None)
    rows = [[CLASSES[tag] for tag in row[:n]] for row, n in zip(kept.tolist(), lengths.tolist(), strict=True)]
    others = [[CLASSES[tag] for tag in row[:n]] for row, n in zip(free.tolist(), lengths.tolist(), strict=True)]
    assert keeps_bio(rows)
    assert not keeps_bio(others)


def test_scores_of_noisy_tags_do_not_fall():
    torch.manual_seed(7)
    truth = [["B-A", "I-A", "I-A", "O", "B-B", "I-B", "O", "O"]] * 200
    numbers = torch.tensor([[CLASSES.index(tag) for tag in one] for one in truth])
    logits = 2.0 * torch.nn.functional.one_hot(numbers, 5) + 1.2 * torch.randn(200, 8, 5)
    model, lengths = Headed(nn.Identity()), torch.full((200,), 8)
    scores = []
    for allowed in (None, bio_chain(CLASSES)):
        found = best_tags(model, logits, lengths, allowed)
        scores.append(span_scores(truth, [[CLASSES[tag] for tag in row] for row in found.tolist()]).f1)
    assert scores[1] > scores[0]


def test_a_narrow_beam_keeps_the_rule():
    """A word that was met inside of spans alone is still no beginning of one."""
    data = SimpleNamespace(rows=SimpleNamespace(tags=ragged([[0, 2, 4]])), column=lambda _: [("Ann", "Lee", "x")])
    model = HmmConfig(5, beam=1).build()
    model.fit(data, FitSettings(), Nobody())
    asked = [("Lee",), ("Lee", "Lee"), ("x", "Lee")]
    places = [np.arange(len(one)) for one in asked]
    found = tag_rows(model, letters(asked), np.arange(3), places, bio_chain(CLASSES))
    assert keeps_bio([["B-A"], *([CLASSES[tag] for tag in row] for row in found)])


def test_answers_keep_no_gradients():
    class Reads(Headed):
        def forward(self, tokens: torch.Tensor, state: None, context: object) -> tuple[torch.Tensor, None]:
            told.append(torch.is_grad_enabled())
            return tokens[..., None].float().expand(*tokens.shape, 4), None

    told = list[bool]()
    tag_rows(Reads(CrfHead(4, 5)), ragged([[1, 2]]), np.arange(1), [np.arange(2)], None)
    assert told == [False]


@pytest.mark.parametrize("head", [nn.Identity, lambda: CrfHead(5, 5)])
def test_a_span_is_told_where_its_chance_is_above_half_of_the_f1(head):
    """Of a sentence of one word, whose chance of being a thing is p, the others sharing the rest."""
    model = Headed(head())
    if isinstance(model.head, CrfHead):
        nn.init.eye_(model.head.weight)
        nn.init.zeros_(model.head.bias)
    for f1 in (0.3, 0.6, 0.9):
        model.lean = torch.tensor(lean_for(f1))
        for p, told in ((f1 / 2 - 0.01, "O"), (f1 / 2 + 0.01, "B-A")):
            logits = torch.tensor([[[p, 1e-9, 1e-9, 1e-9, 1 - p]]]).log()
            with torch.no_grad():
                best = best_tags(model, logits, torch.tensor([1]), span_chain(model, CLASSES))
            assert CLASSES[best[0, 0]] == told


def test_a_model_without_a_lean_keeps_to_what_is_likeliest():
    chain, rule = span_chain(nn.Linear(1, 1), CLASSES), bio_chain(CLASSES)
    assert torch.equal(chain.between, rule.between)
    assert torch.equal(chain.start, rule.start)
