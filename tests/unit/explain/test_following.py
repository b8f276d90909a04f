"""What is kept of each part while a model reads: what it gave, whatever becomes of it later and however long it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard.core import registry
from regard.core.tap import Tap
from regard.errors import UsageError
from regard.explain.calls import Calls, lengths
from regard.explain.flow import Flow
from regard.explain.following import follow
from regard.serving.beginning import example_input
from regard.tasks import task_named


class Residual(nn.Module):
    """A stranger's stream, to which every part is added where it lies."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.one, self.act = nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        stream = self.embed(x)
        stream += self.act(self.one(stream))
        return stream


def test_a_part_has_what_it_gave_though_the_model_writes_over_it():
    part, x = Residual(), torch.randn(1, 4, 3)
    passed = follow(part, part, [x]).passed
    with torch.no_grad():
        given = part.embed(x)
        torch.testing.assert_close(passed["embed"].value, given[0])
        torch.testing.assert_close(passed["one"].value, part.one(given)[0])
    assert (passed["one"].value < 0).any(), "the activation writes over what it is given"


class Pair(NamedTuple):
    hidden: Tensor
    state: Tensor


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Pair:
        return Pair(self.line(x), x)


class Twice(nn.Module):
    """One part at two places, and a part that gives a tuple whose places have names."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.last, self.seen = nn.Linear(3, 3), Inner(), nn.Linear(3, 3), Tap()
        self.again = nn.ModuleDict({"left": self.left, "last": self.last})

    def forward(self, x: Tensor) -> Tensor:
        given = self.right(self.left(x))
        return self.seen(self.again["last"](given.hidden) + given.state)


def test_a_part_at_two_places_and_a_tuple_with_names_are_followed():
    part, x = Twice(), torch.randn(1, 4, 3)
    followed = follow(part, part, [x])
    with torch.no_grad():
        torch.testing.assert_close(followed.outputs, part(x))
    assert list(followed.passed) == ["left", "right", "last", "seen"]


def test_hooks_are_gone_after_a_failure():
    part = Residual()
    with pytest.raises(RuntimeError):
        follow(part, part, [torch.randn(1, 4, 2)])
    assert all(not one._forward_hooks and not one._forward_pre_hooks for one in part.modules())
    torch.testing.assert_close(part(torch.zeros(1, 1, 3)), part(torch.zeros(1, 1, 3)))


@pytest.mark.parametrize("room", [1000, 8, 0])
def test_without_room_the_lengths_of_all_calls_are_kept(room: int):
    given = torch.randn(5, 1, 1, 3)
    calls = Calls(nn.Linear(3, 3))
    left = room
    for one in given:
        left -= calls.add(one, left)
    assert calls.is_whole == (room == 1000)
    assert left == (room - 15 if calls.is_whole else room)
    wanted = given[:, 0, 0]
    value = calls.value()
    torch.testing.assert_close(value, wanted if calls.is_whole else wanted.norm(dim=1, keepdim=True))
    assert calls.shape(value) == (5, 3)


def test_a_length_leaves_out_what_has_none():
    value = torch.tensor([[[3.0, -torch.inf], [torch.nan, 4.0]]])
    assert lengths(nn.Linear(2, 2), value).tolist() == [[[3.0], [4.0]]]


def test_every_size_is_a_number_also_of_chances_that_are_none(tmp_path: Path):
    given: Any = {"smoothing": "mle", "interpolate": False}
    run = regard.train("ngram", "world:stories", size="tiny", out=tmp_path / "run", quiet=True, **given)
    view = run.explain("the zebra cat", view="flow")
    told = json.loads(json.dumps(view.to_dict()))
    assert all(size is not None for node in told["panels"][0]["nodes"] for size in node.get("sizes", ()))
    assert "nan" not in view.to_svg()
    assert view.to_png()


@pytest.mark.parametrize("name", ["naive_bayes", "linear_labels"])
def test_an_empty_text_has_an_answer_and_no_position(name: str, tmp_path: Path):
    run = regard.train(name, task_named(registry.entry(name).task).world, size="tiny", out=tmp_path / "run", quiet=True)
    view = run.explain("", view="flow")
    (panel,) = view.panels
    assert isinstance(panel, Flow)
    assert panel.answers is not None
    assert panel.answers.chances(panel.place).sum() == pytest.approx(1)
    assert view.to_svg().startswith("<svg")
    with pytest.raises(UsageError, match="position 1: the text is empty"):
        run.explain("", view="flow", position=1)


def test_the_chances_of_a_diagram_are_those_that_are_predicted(tmp_path: Path):
    world = task_named("labelled").world
    run = regard.train("classifier", world, budget="3steps", size="tiny", out=tmp_path / "run", quiet=True)
    text = example_input(run)
    (panel,) = run.explain(text, view="flow").panels
    assert isinstance(panel, Flow)
    assert panel.answers is not None
    wanted = dict(zip(run.classes, run.predict_proba([text])[0], strict=True))
    told = [wanted[name] for name in panel.answers.names[0]]
    np.testing.assert_allclose(panel.answers.chances(0), told, rtol=1e-4)
