"""The worked numbers on the pages of models are those of the package."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.core import registry
from regard.core.context import Context
from regard.core.data_spec import EXAMPLE
from regard.core.fitted import FitSettings, Nobody
from regard.fitting.lexicon import Texts, expectation_maximisation
from regard.layers.crf import Chain, log_partition, log_score
from regard.layers.pooling import PoolingConfig
from regard.mixers.mean import MeanConfig

FOLDER = Path(__file__).parents[2] / "docs" / "models"


def told(name: str, *numbers: str) -> None:
    """The section of worked numbers of a page holds each of these."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").partition("## Worked numbers")[2].partition("\n## ")[0]
    for number in numbers:
        assert number in text, number


@dataclass(frozen=True)
class Given:
    """Texts and what is known of each, as a task gives them to a model that is fitted at once."""

    texts: tuple[str, ...]
    labels: Any = None
    numbers: Any = None
    hits: Any = None

    @property
    def rows(self) -> Given:
        return self

    def column(self, name: str) -> tuple[str, ...]:
        assert name == "text"
        return self.texts


def fitted(name: str, given: Given, **settings: Any) -> Any:
    model: Any = registry.entry(name).config(EXAMPLE, **settings).build()
    model.fit(given, FitSettings(), Nobody())
    return model


def answer(model: Any, text: str) -> torch.Tensor:
    letters = torch.tensor([[ord(letter) for letter in text]])
    return model.head(model(letters, None, Context(lengths=torch.tensor([len(text)])))[0])[0].double()


def test_the_means_of_dan():
    x = torch.tensor([[[2.0, 0.0], [0.0, 4.0], [4.0, 2.0]]])
    assert MeanConfig(2).build()(x)[0][0].tolist() == [[2, 0], [1, 2], [2, 2]]
    told("dan", "$(1, 2)$", "$(2, 2)$")


def test_the_share_of_the_majority():
    labels = np.array([0, 0, 0, 1])
    assert answer(fitted("majority", Given(("a", "b", "c", "d"), labels)), "e").exp()[0] == pytest.approx(3 / 4)
    told("majority", "3 / 4")


def test_what_naive_bayes_makes_of_one_word():
    model = fitted("naive_bayes", Given(("good film", "dull film"), np.array([0, 1])), order=1)
    assert answer(model, "good").exp()[0] == pytest.approx(2 / 3)
    told("naive_bayes", "0.4 / 0.6 = 0.667")


def test_the_mean_of_numbers_and_the_rate_of_a_label():
    assert float(answer(fitted("average", Given(("a",), numbers=[2.0, 4.0, 9.0])), "b")) == pytest.approx(5)
    hits = np.array([[row < 3, False] for row in range(9)], float)
    chances = answer(fitted("label_rates", Given(("a",), hits=hits)), "b").sigmoid()
    assert chances.tolist() == pytest.approx([0.35, 0.05])
    told("label_rates", "3.5 / 10 = 0.35", "0.5 / 10 = 0.05")
    told("average", "it is 5")


@pytest.mark.parametrize(("steps", "x_of_a", "y_of_b"), [(1, 0.75, 0.5), (2, 1.6 / (1.6 + 1 / 3), 0.625)])
def test_two_steps_of_the_lexicon(steps: int, x_of_a: float, y_of_b: float):
    source, target = (Texts(np.array([0, 1, 0]), np.array([0, 2, 3])) for _ in range(2))
    found = expectation_maximisation(source, target, 2, 2, steps, 1 << 20)
    # a met x and y, b met x and y, in this order.
    assert found.t[[0, 3]].tolist() == pytest.approx([x_of_a, y_of_b])
    told("ibm1", "= 0.75", "0.83", "= 0.625")


def test_two_words_of_a_chain():
    ends = torch.zeros(2, dtype=torch.float64)
    emissions, chain = torch.eye(2, dtype=torch.float64)[None], Chain(torch.eye(2, dtype=torch.float64), ends, ends)
    lengths = torch.tensor([2])
    scores = {
        tags: float(log_score(emissions, torch.tensor([tags]), lengths, chain))
        for tags in itertools.product((0, 1), repeat=2)
    }
    assert scores == {(0, 0): 2, (0, 1): 2, (1, 1): 2, (1, 0): 0}
    assert float((2 - log_partition(emissions, lengths, chain)).exp()) == pytest.approx(0.319, abs=5e-4)
    told("crf", "AA 2, AB 2, BB 2, BA 0", "0.319")


def test_trend_and_rest_of_three_values():
    model: Any = registry.entry("dlinear").config(EXAMPLE, kernel=3).build()
    columns = model.columns(torch.tensor([[[3.0], [6.0], [9.0]]]), torch.zeros(1, 1, 1))
    assert columns[0].tolist() == [4, 6, 8, -1, 0, 1]
    told("dlinear", "m = (4, 6, 8)", "s = (-1, 0, 1)")


@pytest.mark.parametrize(("form", "vector"), [("last", [2, 2]), ("mean", [2, 3]), ("max", [3, 5])])
def test_three_ways_to_one_vector(form: Any, vector: list[float]):
    x = torch.tensor([[[1.0, 5.0], [3.0, 2.0], [2.0, 2.0]]])
    assert PoolingConfig(2, form).build()(x)[0].tolist() == pytest.approx(vector)
    told("classifier", str(tuple(vector)))
