"""Fitted taggers and CRF heads go through every verb."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from calling import call_here, done, refused, told

from regard.run.run import load
from regard.tasks import task_named

OWN = ("most_frequent", "hmm", "crf")
QUICK = ("--quiet", "--device", "cpu")
PLACES, PEOPLE = ("Rome", "Bonn", "Oslo", "Lima"), ("Ann Lee", "Bob Ray", "Eve Fox", "Tom Kay")


def spans() -> str:
    lines = []
    for place in PLACES:
        for person in PEOPLE:
            first, last = person.split()
            words = [(first, "B-PER"), (last, "I-PER"), ("lives", "O"), ("in", "O"), (place, "B-LOC"), (".", "O")]
            lines += [*(f"{word}\t{tag}" for word, tag in words), ""]
    return "\n".join(lines) + "\n"


@pytest.fixture
def texts(here: Path) -> Path:
    (here / "t.conll").write_text(spans(), encoding="utf-8")
    return here


@pytest.mark.parametrize("model", OWN)
def test_a_fitted_tagger_goes_through_the_verbs(texts: Path, model: str):
    card = told("train", "t.conll", "--model", model, "--out", "r", *QUICK)
    assert (card["reason"], card["model"], card["task"]) == ("fitted", model, "tagged")
    assert card["scores"]["accuracy"] == 1.0
    (answer,) = told("generate", "r", "Ann Lee lives in Oslo .")["answers"]
    assert answer["tags"] == ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]
    assert told("generate", "r", " ")["answers"][0]["tags"] == []
    assert told("evaluate", "r", "t.conll")["span_f1"] == 1.0
    assert told("evaluate", "r")["accuracy"] == card["scores"]["accuracy"]
    assert "fitted" in done("show", "r", "--verify")
    assert "task tagged" in done("show", model)
    view = told("explain", "r", "Ann Lee lives in Oslo .")
    assert view["about"]["tags"] == answer["tags"]
    assert ("transitions" in done("explain", "r", "--list")) == (model != "most_frequent")
    assert "nothing to resume" in refused("train", "--resume", "--out", "r")
    assert "needs one of" in refused("score", "r", "Ann Lee")


def test_explain_tells_what_decided_and_what_tags_say_of_neighbours(texts: Path):
    done("train", "t.conll", "--model", "crf", "--out", "r", *QUICK)
    view = told("explain", "r", "Ann Lee lives in Oslo", "--view", "tags", "--position", "5")
    panels = {panel.get("key"): panel for panel in view["panels"]}
    assert [row[1] for row in panels["words"]["rows"]] == ["B-PER", "I-PER", "O", "O", "B-LOC"]
    assert sum(value > 0 for value in panels["features"]["values"]) > 0
    strongest = told("explain", "r", "Ann", "--view", "transitions")["panels"][1]["rows"]
    assert ["B-PER", "I-PER"] in [row[:2] for row in strongest[:4]]


@pytest.mark.parametrize("encoder", ["fnn", "lstm", "transformer"])
def test_a_crf_head_trains_answers_and_is_looked_at(texts: Path, encoder: str):
    words = ("--model", encoder, "--size", "tiny", "--set", "model.head=crf", "--budget", "4steps")
    card = told("train", "t.conll", *words, "--out", "r", *QUICK)
    assert card["valid_loss"] > 0
    assert len(told("generate", "r", "Ann Lee lives")["answers"][0]["tags"]) == 3
    assert told("explain", "r", "Ann Lee", "--view", "transitions")["about"]["tags"] == 4
    assert told("explain", "r", "Ann Lee lives", "--view", "drop")["panels"]
    smoothed = ("--set", "train.label_smoothing=0.1", "--out", "s", *QUICK)
    assert "a CRF head has one answer for a sentence" in refused("train", "t.conll", *words, *smoothed)


def test_where_tags_mark_spans_they_are_chosen_together_and_told_by_their_f1(texts: Path):
    often = ("--set", "train.evaluate_every=10", "--set", "train.lr=0.03", "--budget", "40steps")
    card = told("train", "t.conll", "--size", "tiny", *often, "--out", "r", *QUICK)
    lines = [json.loads(line) for line in (texts / "r" / "metrics.jsonl").read_text().splitlines()]
    best = next(line["valid_span_f1"] for line in lines if line["step"] == card["best_step"] and "valid_loss" in line)
    assert best == max(line["valid_span_f1"] for line in lines if "valid_loss" in line)
    lean = load(texts / "r").model.state_dict()["lean"].item()
    assert lean == pytest.approx(min(2.0, math.log((2 - best) / best)) if best else 2.0, abs=1e-6)
    assert told("explain", "r", "Ann Lee", "--view", "transitions")["about"]["tags"] == 4
    done("train", "t.conll", "--size", "tiny", "--budget", "2steps", "--set", "data.bio=false", "--out", "free", *QUICK)
    assert "lean" not in load(texts / "free").model.state_dict()


def test_the_rule_of_spans_is_kept_unless_it_is_left_out(texts: Path):
    for out, more in (("kept", ()), ("free", ("--set", "data.bio=false"))):
        done("train", "t.conll", "--model", "most_frequent", "--out", out, *more, *QUICK)
    found = {out: told("generate", out, "Lee Ann")["answers"][0]["tags"] for out in ("kept", "free")}
    assert found["free"] == ["I-PER", "B-PER"]
    assert found["kept"][0] != "I-PER"


@pytest.mark.parametrize("model", OWN)
def test_tags_that_tell_nothing_apart_or_were_never_met_get_one_line(here: Path, model: str):
    Path("one.conll").write_text("".join(f"a{n}\tX\nb\tX\n\n" for n in range(30)), encoding="utf-8")
    assert "at least two classes" in refused("train", "one.conll", "--model", model, "--out", "r", *QUICK)
    Path("x.conll").write_text("a\tX\n\nb\tY\n", encoding="utf-8")
    Path("y.conll").write_text("a\tZ\n", encoding="utf-8")
    message = refused("train", "x.conll", "--valid", "y.conll", "--model", model, "--out", "r", *QUICK)
    assert "'Z' does not occur in the training part" in message
    assert not Path("r").exists()
    Path("z.conll").write_text("b\tY\n\na\tX\n", encoding="utf-8")
    done("train", "x.conll", "--valid", "z.conll", "--model", model, "--out", "r", *QUICK)
    assert told("evaluate", "r")["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("model.strength=0",), "strength must be positive"),
        (("model.tolerance=1",), "tolerance must lie between"),
        (("model.min_words=0",), "must be 1 or more"),
        (("model.pairs=some",), "is not a choice"),
        (("model.beam=3",), "no such setting"),
    ],
)
def test_settings_that_mean_nothing_get_one_line(texts: Path, settings: tuple[str, ...], message: str):
    words = [word for setting in settings for word in ("--set", setting)]
    assert message in refused("train", "t.conll", "--model", "crf", "--out", "r", *words, *QUICK)


def test_a_solver_that_does_not_converge_says_so_and_the_run_keeps_it(texts: Path):
    words = ("--model", "crf", "--out", "r", "--set", "model.max_steps=2", "--device", "cpu")
    out = call_here("train", "t.conll", *words)
    assert out.code == 0
    assert "did not converge" in out.out + out.err
    fit = json.loads((texts / "r/config.json").read_text())["fit"]
    assert not fit["converged"]
    assert "did not converge" in fit["notes"][0]


def test_the_same_sentences_give_the_same_file(texts: Path):
    for out in ("a", "b"):
        done("train", "t.conll", "--model", "crf", "--out", out, *QUICK)
    assert (texts / "a/model.safetensors").read_bytes() == (texts / "b/model.safetensors").read_bytes()


def test_a_fitted_model_takes_no_encoder(texts: Path):
    assert "no encoder to load" in refused("train", "t.conll", "--model", "crf", "--from", "r", "--out", "x", *QUICK)


def test_the_ladder_begins_with_them():
    assert task_named("tagged").ladder[:3] == OWN
