"""The half of a classifier that is solved for: the linear classifier itself, beside a net that learns for itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from regard.core.fitted import FitSettings, Noted
from regard.core.model import logits_of
from regard.data.batch import Batch
from regard.layers.paired_head import PairedHead
from regard.layers.spelled import spelling
from regard.models.linear import LinearConfig
from regard.models.linear_half import LinearHalf, rows_for

TEXTS = ["a fine film", "not a fine film", "dull and long", "fine , fine", "long", "a dull thing", "not dull"]
LABELS = np.array([0, 1, 2, 0, 2, 1, 0])


@dataclass(frozen=True)
class Given:
    """Examples as both of them are given."""

    labels: np.ndarray

    @property
    def rows(self) -> Given:
        return self

    @property
    def sizes(self) -> np.ndarray:
        return np.array([len(text.split()) for text in TEXTS])

    def column(self, name: str) -> list[str]:
        return TEXTS

    def batch_of(self, rows: np.ndarray, _numbers: np.ndarray) -> Batch:
        words, targets, lengths = as_words([TEXTS[row] for row in rows])
        return Batch(words, targets, lengths, [])


def as_words(texts: list[str]) -> Any:
    """Words with their spelling, nothing to predict, lengths."""
    sizes = [len(text.split()) for text in texts]
    found = torch.zeros(len(texts), max(sizes), 17, dtype=torch.long)
    for row, text in enumerate(texts):
        for place, word in enumerate(text.split()):
            found[row, place, 1:] = torch.from_numpy(spelling(word).astype(np.int64))
    return found, torch.zeros(0), torch.tensor(sizes)


@pytest.mark.parametrize("skip", [0, 2])
@pytest.mark.parametrize("classes", [2, 3])
def test_it_answers_as_the_linear_classifier_over_the_same_n_grams(classes: int, skip: int) -> None:
    labels, notes = LABELS % classes, list[str]()
    half = LinearHalf(1 << 20, classes, skip)
    half.solve(Given(labels), FitSettings(), Noted(notes.append))
    linear = LinearConfig(classes, characters=(2, 5), loss="both", tolerance=1e-6, skip=skip).build()
    linear.fit(Given(labels), FitSettings(), Noted(notes.append))
    asked = ["not a long film", "fine and new", "dull"]
    words, _, lengths = as_words(asked)
    codes = [torch.tensor([[ord(letter) for letter in text]]) for text in asked]
    expected = torch.cat([logits_of(linear, one) for one in codes])
    assert torch.allclose(half(words, lengths), expected, atol=2e-3)
    assert not notes


def test_classes_that_count_more_do_so_in_it_too() -> None:
    weighed = FitSettings(class_weights=(1.0, 3.0, 0.5))
    half, plain = LinearHalf(1 << 20, 3, 2), LinearHalf(1 << 20, 3, 2)
    half.solve(Given(LABELS), weighed, Noted(print))
    plain.solve(Given(LABELS), FitSettings(), Noted(print))
    linear = LinearConfig(3, characters=(2, 5), loss="both", tolerance=1e-6, skip=2).build()
    linear.fit(Given(LABELS), weighed, Noted(print))
    asked = ["not a long film", "dull"]
    words, _, lengths = as_words(asked)
    codes = [torch.tensor([[ord(letter) for letter in text]]) for text in asked]
    expected = torch.cat([logits_of(linear, one) for one in codes]).exp()
    assert torch.allclose(half(words, lengths).exp(), expected, atol=2e-3)
    assert not torch.allclose(plain(words, lengths).exp(), expected, atol=2e-2)


def test_evidence_sums_to_what_it_says() -> None:
    half = LinearHalf(1 << 18, 3, 2)
    half.solve(Given(LABELS), FitSettings(), Noted(print))
    found = half.evidence(["not", "a", "new", "film"])
    words, _, lengths = as_words(["not a new film"])
    z = torch.from_numpy(found.offsets + found.values @ found.weights)
    assert torch.allclose(z.log_softmax(-1).float(), half(words, lengths)[0], atol=1e-5)
    assert "film" in found.names
    assert "new" not in found.names, "of what training never met nothing is known"


def test_texts_beyond_the_memory_are_left_out_and_that_is_told() -> None:
    notes = list[str]()
    LinearHalf(1 << 14, 3).solve(Given(LABELS), FitSettings(memory=2048), Noted(notes.append))
    assert "with 3 of 7 texts" in notes[0]


def test_there_is_none_where_classes_are_too_many() -> None:
    assert rows_for(2) == 1 << 22
    assert rows_for(8) == 1 << 20
    assert rows_for(1_000) == 0


def test_the_loss_is_that_of_the_answer_and_its_gradient_that_of_the_net() -> None:
    torch.manual_seed(0)
    head, targets = PairedHead(4, 3).double(), torch.tensor([2, 0, 1])
    net = torch.randn(3, 4, dtype=torch.float64)
    vectors = torch.cat([net, torch.randn(3, 3, dtype=torch.float64).log_softmax(-1)], -1)
    loss = head(vectors, targets)
    loss.backward()
    assert torch.allclose(loss, F.cross_entropy(head(vectors), targets, reduction="sum"))
    own = F.cross_entropy(net @ head.weight.T + head.bias, targets, reduction="sum")
    (expected,) = torch.autograd.grad(own, head.weight)
    assert head.weight.grad is not None
    assert torch.allclose(head.weight.grad, expected)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A classifier by default, of texts as people write them, in which marks stick to words."""
    folder = tmp_path_factory.mktemp("halves")
    lines = [f"{('good', 'bad')[i % 2]}\tNumber {i}: it was {('great', 'dull')[i % 2]}!" for i in range(120)]
    (folder / "texts.tsv").write_text("\n".join(lines) + "\n")
    return regard.train(
        None, folder / "texts.tsv", budget="6steps", size="tiny", out=folder / "run", quiet=True, task="labelled"
    )


def test_a_default_training_has_both_halves_and_keeps_them(run: Any) -> None:
    assert run.evaluate().to_dict()["accuracy"] == 1.0
    again: Any = regard.load(Path(run.path))
    asked = ["It was great, and that was that.", "dull...", ""]
    assert again.answers(asked) == run.answers(asked)
    assert torch.equal(again.model.linear.weights, run.model.linear.weights)
    assert again.model.linear.weights.abs().sum() > 0
    assert 0 <= float(again.model.head.share) <= 1


def test_explain_shows_the_n_grams_of_that_half_and_how_much_it_counts(run: Any) -> None:
    view = run.explain("It was great!", "evidence")
    assert view.about["parts"]["great"] > 0
    assert "great !" in view.about["parts"], "a mark is a word of its own"
    assert any("counts" in getattr(panel, "text", "") for panel in view.panels)
