"""Fitted models of pairs, captions and masked text go through every verb, and so does one from outside the package."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest
from calling import done, refused, told

from regard.core import registry
from regard.tasks import task_named

QUICK = ("--quiet", "--device", "cpu")
WORDS = ("--set", "data.tokens=words")
NUMBERS = itertools.count(1)
NOUNS = {"dog": "hund", "cat": "katze", "bird": "vogel", "fish": "fisch", "horse": "pferd", "cow": "kuh"}
VERBS = {"sees": "sieht", "likes": "mag", "finds": "findet"}
PAIRS = "".join(
    f"{verb} the {noun} and the {other}\t{VERBS[verb]} das {NOUNS[noun]} und das {NOUNS[other]}\n"
    for verb in VERBS
    for noun, other in itertools.permutations(NOUNS, 2)
)
STRANGER = '''
"""The word that was written most often at each place."""
from dataclasses import dataclass, replace
from typing import ClassVar
import torch
from regard.core.config import Config
from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.core.state import Position, advance
from regard.models.fitted_writer import FittedWriter

@dataclass(frozen=True)
class PlaceConfig(Config, kind="NAME"):
    fitted: ClassVar[bool] = True
    vocab_size: int

    def build(self):
        return Places(self)

class Places(FittedWriter):
    d_memory = 1

    def __init__(self, config):
        super().__init__()
        self.config, self.vocab_size = config, config.vocab_size
        self.register_buffer("counts", torch.ones(50, config.vocab_size, dtype=torch.float64))

    def fit(self, data, settings, tell):
        assert data.column("source")[0] and len(data.examples) == len(data.rows.target)
        counts = torch.ones(50, self.vocab_size, dtype=torch.float64)
        for row in range(len(data.rows.target)):
            for place, word in enumerate([*data.rows.target[row].tolist(), self.vocab_size - 1]):
                counts[min(place, 49), word] += 1
        self.take({"counts": counts})
        assert settings.judge() > 0
        return {"told": "a word for each place"}

    def encode(self, source, lengths=None):
        return source[..., None], lengths

    def begin(self, memory, lengths):
        return Position(torch.zeros(len(memory), dtype=torch.long, device=memory.device))

    def write(self, tokens, state, context):
        place = state.position[:, None] + torch.arange(tokens.shape[1])
        p = (self.counts / self.counts.sum(-1, keepdim=True))[place.clamp(max=49)]
        return p.log().to(self.like.dtype), Position(advance(state.position, tokens.shape[1], context.lengths))

@register("NAME", sizes={size: {} for size in ("tiny", "small")}, task="pairs")
def places(spec: DataSpec):
    """The word that was written most often at each place."""
    return PlaceConfig(spec.vocab_size)
'''


@pytest.fixture
def pairs(here: Path) -> Path:
    (here / "p.tsv").write_text(PAIRS, encoding="utf-8")
    return here


@pytest.fixture
def pictures(here: Path) -> Path:
    """A folder of squares of one colour, of two sizes."""
    image = pytest.importorskip("PIL.Image")
    folder = here / "pics"
    folder.mkdir()
    lines = ["file\tcaption"]
    for number, (name, colour) in enumerate(itertools.product(("red", "green", "blue"), range(4))):
        value = {"red": (255, 10 * colour, 0), "green": (0, 255, 10 * colour), "blue": (10 * colour, 0, 255)}[name]
        size = 8 if number % 2 else 12
        image.fromarray(np.full((size, size, 3), value, np.uint8)).save(folder / f"{number}.png")
        lines.append(f"{number}.png\ta {name} square")
    (folder / "captions.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("model", "view"), [("ibm1", "alignment"), ("nearest", "neighbours")])
def test_a_fitted_translator_goes_through_the_verbs(pairs: Path, model: str, view: str):
    card = told("train", "p.tsv", "--model", model, "--out", "r", *WORDS, *QUICK)
    assert (card["reason"], card["model"], card["task"]) == ("fitted", model, "pairs")
    assert card["valid_loss"] < 2
    assert told("evaluate", "r")["chrf"] == pytest.approx(card["scores"]["chrf"])
    source = "sees the dog and the cow"
    assert done("generate", "r", source).strip().startswith("sieht das")
    best = told("generate", "r", source, "--beam", "4")["answers"][0]
    greedy = told("generate", "r", source)["answers"][0]
    assert greedy["log_prob"] <= best["log_prob"] <= 0
    assert "fitted" in done("show", "r", "--verify")
    assert told("explain", "r", source)["view"] == view
    assert told("explain", "r", source, "--view", "next")["panels"]
    assert "nothing to resume" in refused("train", "--resume", "--out", "r")
    assert "with a TAB between them" in refused("score", "r", source)
    assert told("score", "r", f"{source}\tsieht das hund und das kuh")["log_prob"] < 0
    assert told("generate", "r", "never met words")["answers"][0]["log_prob"] <= 0


def test_the_alignment_of_counts_is_shown_as_attention_is(pairs: Path):
    done("train", "p.tsv", "--model", "ibm1", "--out", "r", *WORDS, *QUICK)
    view = told("explain", "r", "sees the dog and the cow", "--target", "sieht das hund und das kuh")
    assert {"0-0", "2-2", "5-5"} <= set(view["about"]["pharaoh"].split())
    assert done("generate", "r", "sees the dog and the cow", "--beam", "3", "--coverage", "0.2").strip()


def test_a_captioner_that_looks_up_goes_through_the_verbs(pictures: Path):
    card = told("train", "pics", "--model", "nearest_picture", "--out", "r", "--set", "data.size=8", *QUICK)
    assert card["task"] == "captions"
    assert done("generate", "r", "pics/0.png").strip() == "a red square"
    view = told("explain", "r", "pics/0.png")
    assert view["view"] == "neighbours"
    weights = [row[1] for panel in view["panels"] if panel.get("key") == "found" for row in panel["rows"]]
    assert weights == sorted(weights, reverse=True)
    where = next(panel for panel in view["panels"] if panel["kind"] == "overlay")
    assert np.shape(where["weights"]) == (len(weights), 8, 8)  # where the picture differs from each of them
    assert np.shape(where["picture"]) == (8, 8, 3)
    assert told("evaluate", "r")["captions"] >= 1


def test_counts_of_both_sides_fill_gaps(here: Path):
    lines = [f"the {noun} {verb} the {other} ." for noun in NOUNS for verb in VERBS for other in NOUNS]
    np.random.default_rng(0).shuffle(lines)
    Path("t.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("--set", "data.tokens=words")
    card = told("train", "t.txt", "--task", "masked", "--model", "cloze", "--out", "r", *words, *QUICK)
    assert card["valid_loss"] < 2
    assert done("generate", "r", "the dog [MASK] the cow .").split()[2] in VERBS
    assert told("evaluate", "r")["loss"] == pytest.approx(card["valid_loss"], abs=1e-4)
    assert told("explain", "r", "the dog [MASK] the cow .")["view"] == "fill"
    (here / "l.tsv").write_text("text\tlabel\n" + "good\ta\nbad\tb\n" * 20, encoding="utf-8")
    assert refused("train", "l.tsv", "--from", "r", "--out", "x", *QUICK)


def test_a_translator_from_outside_goes_through_every_verb(pairs: Path, monkeypatch: pytest.MonkeyPatch):
    registry.load_kinds()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    name = f"places{next(NUMBERS)}"
    (pairs / f"{name}_parts.py").write_text(STRANGER.replace("NAME", name), encoding="utf-8")
    use = ("--import", f"{name}_parts")
    assert told("check", name, *use)["held"]
    card = told("train", "p.tsv", "--model", name, "--out", "r", *WORDS, *QUICK, *use)
    assert card["reason"] == "fitted"
    assert "a word for each place" in done("show", "r", "--verify", *use)
    assert done("generate", "r", "sees the dog", *use).split()[1:2] == ["das"]
    assert told("evaluate", "r", *use)["sentences"] > 0
    assert told("explain", "r", "sees the dog", *use)["view"] == "next"
    report = told(
        *("compare", "p.tsv", "--models", f"{name},nearest,ibm1,seq2seq", "--budget", "2steps", "--seeds", "1"),
        *("--out", "c", *WORDS, *use),
    )
    rows = {row["label"]: row for row in report["rows"]}
    assert all(rows[one]["note"] == "is fitted at once" for one in (name, "nearest", "ibm1"))


def test_ladders_begin_with_what_is_fitted():
    feet = {"pairs": ("nearest", "ibm1"), "captions": ("nearest_picture",), "masked": ("cloze",)}
    for task, foot in feet.items():
        assert task_named(task).ladder[: len(foot)] == foot


@pytest.mark.parametrize("model", ["ibm1", "nearest"])
@pytest.mark.parametrize(
    "lines", [["a\tb"], ["a\t", "b\tc"], ["\ta", "b\tc"], ["a b\tx", "\t"], ["a\tb", "a\tb", "c\td"]]
)
def test_few_pairs_and_empty_sides_are_fitted(here: Path, model: str, lines: list[str]):
    Path("x.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("y.tsv").write_text("a\tb \n", encoding="utf-8")
    words = ("--task", "pairs", "--valid", "y.tsv", "--set", "data.missing=empty", *WORDS)
    done("train", "x.tsv", "--model", model, "--out", "r", *words, *QUICK)
    for text in ("a", "never met", "a a a a"):
        assert told("generate", "r", text)["answers"][0]["log_prob"] <= 0


def test_one_picture_and_settings_that_mean_nothing_get_a_line_or_a_result(pictures: Path):
    Path("lone").mkdir()
    (pictures / "0.png").rename("lone/0.png")
    Path("lone/captions.tsv").write_text("file\tcaption\n0.png\ta red square\n", encoding="utf-8")
    assert refused("train", "lone", "--model", "nearest_picture", "--out", "r", *QUICK)
    shutil.copytree("lone", "other")
    Path("other/captions.tsv").write_text("file\tcaption\n0.png\ta red box\n", encoding="utf-8")
    one = ("--valid", "other", "--out", "one", *QUICK)
    done("train", "lone", "--model", "nearest_picture", *one)
    assert done("generate", "one", "pics/1.png").strip() == "a red square"
    for setting in ("model.neighbours=0", "model.bandwidth=0", "model.back_off=-1", "model.grid=0", "model.order=0"):
        assert "found" in refused("train", "lone", "--model", "nearest_picture", "--out", "x", "--set", setting, *QUICK)


@pytest.mark.parametrize("setting", ["iterations=0", "share=1", "prune=1", "language=-1", "order=0", "powers=1"])
def test_settings_of_a_lexicon_that_mean_nothing_get_one_line(pairs: Path, setting: str):
    assert refused("train", "p.tsv", "--model", "ibm1", "--set", f"model.{setting}", "--out", "r", *QUICK)
    assert not Path("r").exists()
