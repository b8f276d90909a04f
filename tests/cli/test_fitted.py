"""Models that are fitted at once go through every verb: those of labelled text, and one from outside the package."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from calling import call_here, done, refused, told

from regard.core import registry
from regard.tasks import task_named

OWN = ("majority", "naive_bayes", "linear")
STRANGER = '''
"""The class whose mean text is nearest."""
from dataclasses import dataclass
from typing import ClassVar
import torch
from torch import nn
from regard.core.config import Config
from regard.core.context import EMPTY
from regard.core.data_spec import DataSpec
from regard.core.registry import register

@dataclass(frozen=True)
class CentroidConfig(Config, kind="NAME"):
    fitted: ClassVar[bool] = True
    vocab_size: int
    n_classes: int

    def build(self):
        return Centroid(self)

class Centroid(nn.Module):
    causal = has_state = False
    max_length = None
    chunk_sizes = ()

    def __init__(self, config):
        super().__init__()
        self.config, self.head = config, nn.Identity()
        self.register_buffer("means", torch.zeros(config.n_classes, config.vocab_size))

    def fit(self, data, settings, tell):
        rows, counts = data.rows, torch.zeros(self.config.n_classes)
        assert len(data.examples) == len(rows.labels) and data.column("text")[0]
        self.means.zero_()
        for number, label in enumerate(rows.labels.tolist()):
            tell("averaging", number / len(rows.labels))
            self.means[label] += self.mean(torch.from_numpy(rows.text[number])[None].long())[0]
            counts[label] += 1
        self.means /= counts[:, None]
        tell.note("as near as can be")
        return {"told": "a mean for each class"}

    def mean(self, tokens, lengths=None):
        real = torch.ones_like(tokens) if lengths is None else (torch.arange(tokens.shape[1]) < lengths[:, None])
        found = torch.zeros(len(tokens), self.config.vocab_size, dtype=self.means.dtype)
        return found.scatter_add(1, tokens, real.to(found)) / real.sum(1, keepdim=True)

    def forward(self, tokens, state=None, context=EMPTY):
        return -(self.mean(tokens, context.lengths)[:, None] - self.means).square().sum(-1), None

@register("NAME", sizes={size: {} for size in ("tiny", "small")}, task="labelled")
def centroid(spec: DataSpec):
    """The class whose mean text is nearest."""
    return CentroidConfig(spec.vocab_size, spec.n_classes)
'''
LABELLED = "text\tlabel\n" + "".join(
    f"a {word} day for the {one} and the {other} !\t{label}\n"
    for word, label in (("good", "good"), ("bad", "bad"))
    for one in ("cat", "dog", "hen", "fox", "bird")
    for other in ("mat", "log", "hill", "roof")
)
QUICK = ("--quiet", "--device", "cpu")
NUMBERS = itertools.count(1)


@pytest.fixture
def texts(here: Path) -> Path:
    (here / "l.tsv").write_text(LABELLED, encoding="utf-8")
    return here


@pytest.fixture
def stranger(texts: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, tuple[str, ...]]:
    """A name of its own for each test, as a module is imported once, and the words that import it."""
    registry.load_kinds()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    name = f"nearest{next(NUMBERS)}"
    (texts / f"{name}_parts.py").write_text(STRANGER.replace("NAME", name), encoding="utf-8")
    return name, ("--import", f"{name}_parts")


@pytest.mark.parametrize("model", OWN)
def test_a_fitted_model_goes_through_the_verbs(texts: Path, model: str):
    card = told("train", "l.tsv", "--model", model, "--out", "r", *QUICK)
    assert (card["reason"], card["model"], card["task"]) == ("fitted", model, "labelled")
    assert card["scores"]["accuracy"] == (1.0 if model != "majority" else card["scores"]["accuracy"])
    assert not any("--resume" in command for command in card.get("next", []))
    (answer,) = told("generate", "r", "a bad day for the moose")["answers"]
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert answer["text"] == "bad" or model == "majority"
    assert told("evaluate", "r", "l.tsv")["examples"] == 40
    assert told("evaluate", "r")["accuracy"] == card["scores"]["accuracy"]
    assert "fitted" in done("show", "r", "--verify")
    assert told("explain", "r", "a bad day")["panels"]
    assert "nothing to resume" in refused("train", "--resume", "--out", "r")
    assert "needs one of" in refused("export", "r", "r.arpa")
    assert "needs one of" in refused("score", "r", "a bad day")


def test_the_same_text_gives_the_same_file(texts: Path):
    for out in ("a", "b"):
        done("train", "l.tsv", "--model", "linear", "--out", out, *QUICK)
    assert (texts / "a/model.safetensors").read_bytes() == (texts / "b/model.safetensors").read_bytes()


def test_a_model_from_outside_goes_through_every_verb(texts: Path, stranger: tuple[str, tuple[str, ...]]):
    name, use = stranger
    assert told("check", name, *use)["held"]
    assert name in done("list", *use)
    assert "task labelled" in done("show", name, *use)
    card = told("train", "l.tsv", "--model", name, "--out", "r", *QUICK, *use)
    assert card["scores"]["accuracy"] > 0.9
    assert "a mean for each class" in done("show", "r", "--verify", *use)
    assert json.loads((texts / "r/config.json").read_text())["fit"]["notes"] == ["as near as can be"]
    assert told("evaluate", "r", *use)["accuracy"] == card["scores"]["accuracy"]
    assert done("generate", "r", "a bad day for the dog and the mat !", *use).strip().startswith("bad")
    assert told("explain", "r", "a bad day", *use)["panels"]
    assert "nothing to resume" in refused("train", "--resume", "--out", "r", *use)
    assert "needs one of" in refused("export", "r", "r.arpa", *use)
    assert "imported first" in refused("train", "l.tsv", "--model", "nearer", "--out", "x")


def test_compare_runs_the_foot_of_the_ladder_first(texts: Path, stranger: tuple[str, tuple[str, ...]]):
    name, use = stranger
    models = ",".join((*OWN, name, "dan"))
    report = told("compare", "l.tsv", "--models", models, "--budget", "4steps", "--seeds", "1", "--out", "c", *use)
    rows = {row["label"]: row for row in report["rows"]}
    assert all(rows[one]["note"] == "is fitted at once" for one in (*OWN, name))
    assert rows["dan"]["note"] != "is fitted at once"
    assert task_named("labelled").ladder[:3] == OWN


def test_explain_tells_the_sum_that_decided(texts: Path):
    done("train", "l.tsv", "--model", "linear", "--out", "r", "--set", "model.characters=[]", *QUICK)
    view = told("explain", "r", "a bad day", "--view", "evidence")
    assert max(view["about"]["parts"], key=lambda name: view["about"]["parts"][name]) in ("bad", "a bad", "bad day")
    listed = next(panel for panel in view["panels"] if panel["key"] == "classes")["rows"]
    total = float(listed[-1][2]) - float(listed[-1][3])
    chances = told("generate", "r", "a bad day")["answers"][0]["probabilities"]
    assert total == pytest.approx(np.log(chances["bad"] / chances["good"]), abs=2e-3)
    weights = told("explain", "r", "a bad day", "--view", "weights")
    assert "bad" in weights["panels"][0]["rows"][0][0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["text\tlabel", *(f"text {i}\tone" for i in range(30))], "at least two classes"),
        (
            ["text\tlabel", *(f"text {i}\tlabel{i}" for i in range(30))],
            "where a label is rare, leave it out or hold out other",
        ),
    ],
)
@pytest.mark.parametrize("model", OWN)
def test_labels_that_tell_nothing_apart_get_one_line(here: Path, model: str, lines: list[str], message: str):
    Path("x.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert message in refused("train", "x.tsv", "--model", model, "--out", "r", *QUICK)
    assert not Path("r").exists()


def test_no_number_is_taken_for_a_slip_of_another_one(here: Path):
    Path("x.tsv").write_text("text\tlabel\n" + "".join(f"text {i}\t{i}\n" for i in range(300)), encoding="utf-8")
    message = refused("train", "x.tsv", "--task", "labelled", "--model", "linear", "--out", "r", *QUICK)
    assert "does not occur in the training part; mend it" in message


@pytest.mark.parametrize("model", OWN)
def test_one_example_a_class_and_texts_without_a_word_are_fitted(here: Path, model: str):
    Path("x.tsv").write_text("text\tlabel\ngood\ta\nbad\tb\n\tc\n", encoding="utf-8")
    Path("y.tsv").write_text("text\tlabel\ngood\ta\nbad\tb\n \tc\n", encoding="utf-8")
    empty = ("--set", "data.missing=empty")
    done("train", "x.tsv", "--valid", "y.tsv", "--model", model, "--out", "r", *empty, *QUICK)
    found = [told("generate", "r", text)["answers"][0] for text in (" ", "never met", "good", "\U0001f600")]
    assert all(sum(answer["probabilities"].values()) == pytest.approx(1) for answer in found)
    Path("z.tsv").write_text("text\tlabel\n \ta\n\tb\n", encoding="utf-8")
    Path("w.tsv").write_text("text\tlabel\n\tb\n \ta\n", encoding="utf-8")
    done("train", "z.tsv", "--valid", "w.tsv", "--model", model, "--out", "empty", *empty, *QUICK)
    assert told("evaluate", "empty")["accuracy"] == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("model.order=0", "model.characters=[]"), "nothing to count"),
        (("model.order=-1",), "order must lie in 0 .. 32"),
        (("model.characters=[5,2]",), "such as [2, 5]"),
        (("model.characters=[2]",), "such as [2, 5]"),
        (("model.strength=0",), "strength must be positive"),
        (("model.tolerance=1",), "tolerance must lie between"),
        (("model.loss=squared",), "is not a choice"),
        (("model.weights=idf",), "is not a choice"),
        (("model.alpha=1",), "no such setting"),
    ],
)
def test_settings_that_mean_nothing_get_one_line(texts: Path, settings: tuple[str, ...], message: str):
    words = [word for setting in settings for word in ("--set", setting)]
    assert message in refused("train", "l.tsv", "--model", "linear", "--out", "r", *words, *QUICK)
    assert not Path("r").exists()


def test_a_solver_that_does_not_converge_says_so_and_the_run_keeps_it(texts: Path):
    out = call_here(
        "train", "l.tsv", "--model", "linear", "--out", "r", "--set", "model.max_steps=1", "--device", "cpu"
    )
    assert out.code == 0
    assert "did not converge" in out.out + out.err
    fit = json.loads((texts / "r/config.json").read_text())["fit"]
    assert not fit["converged"]
    assert "did not converge" in fit["notes"][0]
