"""A counted model goes through every verb, over bytes, words and pieces of words."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
from calling import TEXT, call_here, call_process, environment

from regard.models.ngram import NgramModel

COUNT = ("train", "my.txt", "--model", "ngram")


@pytest.fixture
def text(here: Path) -> Path:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    return here


def answer(*argv: str) -> dict:
    outcome = call_here(*argv, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


@pytest.mark.parametrize("tokens", ["bytes", "words", "bpe"])
def test_train_generate_score_evaluate_explain(text: Path, tokens: str):
    card = answer(*COUNT, "--out", "run", "--set", f"data.tokens={tokens}", "--set", "data.documents=line")
    assert card["reason"] == "fitted"
    assert sum(card["n_grams"]) > 100
    assert answer("generate", "run", "the cat", "--max-tokens", "9")["texts"][0]["text"].startswith("the cat")
    assert call_here("generate", "run", "the cat", "--beam", "3", "--max-tokens", "9").code == 0
    scored = answer("score", "run", "the cat sat on the hill")
    explained = answer("explain", "run", "the cat sat on the hill")
    told = [token["log_prob"] for token in explained["about"]["tokens"]]
    assert told[:-1] == pytest.approx([token["log_prob"] for token in scored["tokens"]], abs=1e-6)
    report = answer("evaluate", "run")
    assert report["loss"] == pytest.approx(card["valid_loss"], abs=1e-9)
    assert report["perplexity"] == pytest.approx(math.exp(report["loss"]))


def test_the_worked_calculation_ends_with_the_probability_that_score_gives(text: Path):
    call_here(*COUNT, "--out", "run", "--set", "data.tokens=words", "--set", "data.documents=line")
    p = math.exp(answer("score", "run", "the cat sat")["tokens"][1]["log_prob"])
    lines = call_here("explain", "run", "the cat sat", "--position", "2").out.splitlines()
    assert f"p = {p:.4g}" in lines[-1]


def test_show_and_the_card_speak_of_counts(text: Path):
    card = call_here(*COUNT, "--out", "run").out
    assert "n-grams of order 1 to 5" in card
    assert "regard explain run" in card
    assert "--resume" not in card
    shown = call_here("show", "run", "--verify").out
    assert "n-grams by order" in shown
    assert "at once" in shown
    assert "verified" in shown


def test_an_arpa_file_is_used_like_the_run_it_came_from(text: Path):
    call_here(*COUNT, "--out", "run", "--set", "data.tokens=words", "--set", "data.documents=line")
    assert call_here("export", "run", "run.arpa.gz").code == 0
    one, other = (answer("score", name, "the fox sat on the roof")["log_prob"] for name in ("run", "run.arpa.gz"))
    assert one == pytest.approx(other, abs=1e-5)
    assert answer("evaluate", "run.arpa.gz", "my.txt")["tokens"] > 100
    assert "name data to evaluate on" in call_here("evaluate", "run.arpa.gz").err
    assert call_here("explain", "run.arpa.gz", "the fox").code == 0


def test_eight_bits_cost_what_is_said(text: Path):
    # Over bytes the values are many enough to be rounded.
    plain = answer(*COUNT, "--out", "plain", "--set", "data.tokens=bytes")
    outcome = call_here(
        *COUNT, "--out", "small", "--set", "data.tokens=bytes", "--set", "model.quantise=true", "--json"
    )
    rounded = json.loads(outcome.out)
    assert f"{plain['valid_loss']:.6f} becomes {rounded['valid_loss']:.6f}" in outcome.err
    assert (Path("small") / "model.safetensors").stat().st_size < (Path("plain") / "model.safetensors").stat().st_size
    assert answer("evaluate", "small")["loss"] == pytest.approx(rounded["valid_loss"], abs=1e-9)


def test_counting_in_little_memory_gives_the_same_file(text: Path):
    Path("my.txt").write_text(TEXT * 300, encoding="utf-8")
    weights = []
    for name, flags in (("whole", ()), ("parts", ("--memory", "16M", "--spill", "."))):
        assert call_here(*COUNT, "--out", name, "--set", "data.tokens=words", *flags).code == 0
        weights.append((Path(name) / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert not list(Path().glob("regard-counts-*"))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((*COUNT, "--set", "model.order=0"), "order must lie in 1 .. 32"),
        ((*COUNT, "--set", "model.order=99"), "order must lie in 1 .. 32"),
        ((*COUNT, "--set", "model.smoothing=good_turing"), "is not a choice"),
        ((*COUNT, "--set", "model.smoothing=given"), "ARPA file"),
        ((*COUNT, "--set", "model.prune=[0,2,1]"), "do not fall"),
        ((*COUNT, "--memory", "3"), "512M"),
        ((*COUNT, "--memory", "16M", "--spill", "nowhere"), "--spill"),
        (("export", "run", "run.bin"), "FILE.arpa"),
        (("score", "no.arpa", "x"), "no.arpa"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(text: Path, argv: tuple[str, ...], message: str):
    if "--spill" in argv:
        Path("my.txt").write_text(TEXT * 300, encoding="utf-8")
    outcome = call_here(*argv)
    assert outcome.code not in (0, 1), outcome.out
    last = outcome.err.strip().splitlines()[-1]
    assert last.startswith("regard: error: ")
    assert message in last
    assert not Path("runs").exists()


def test_there_is_nothing_to_resume(text: Path):
    assert call_here(*COUNT, "--out", "run").code == 0
    assert "nothing to resume" in call_here(*COUNT, "--resume", "--out", "run").err
    assert "already holds a run" in call_here(*COUNT, "--out", "run").err


def test_neural_runs_are_told_what_there_is_for_them(text: Path, trained: Path):
    assert "no backoff to show" in call_here("explain", str(trained), "the cat", "--view", "backoff").err
    assert "n-gram models" in call_here("export", str(trained), "x.arpa").err


def test_discounts_that_a_tiny_text_does_not_define_are_explained(text: Path):
    Path("my.txt").write_text("a b a b\na b b\n" * 20, encoding="utf-8")
    outcome = call_process(*COUNT, "--out", "run", "--set", "data.tokens=words", cwd=text)
    assert outcome.code == 0, outcome.err
    assert "Kneser-Ney discounts are estimated from" in outcome.out
    assert "witten_bell" in outcome.out


@pytest.mark.parametrize("change", ["model.smoothing=mle", "model.closed=true"])
def test_an_infinite_loss_is_said_and_the_run_is_whole(text: Path, change: str):
    Path("held.txt").write_text("a zebra never sang\n", encoding="utf-8")
    words = ("--set", "data.tokens=words", "--set", "data.documents=line", "--set", "data.valid=held.txt")
    outcome = call_here(*COUNT, "--out", "run", *words, "--set", change)
    assert outcome.code == 0, outcome.err
    assert "infinite" in outcome.out
    assert "verified" in call_here("show", "run", "--verify").out
    assert call_here("evaluate", "run").code == 0


def test_out_of_memory_while_counting_names_memory_and_leaves_nothing(text: Path, monkeypatch: pytest.MonkeyPatch):
    def hungry(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(NgramModel, "count", hungry)
        outcome = call_here(*COUNT, "--out", "run", "--memory", "64M")
    assert outcome.code == 6
    assert "out of memory with --memory 64M; lower it" in outcome.err
    assert "batch_size" not in outcome.err
    assert not Path("run").exists()
    assert call_here(*COUNT, "--out", "run", "--memory", "32M").code == 0


def test_a_terminated_fit_leaves_nothing(text: Path):
    Path("my.txt").write_text(TEXT * 3000, encoding="utf-8")
    Path("spill").mkdir()
    flags = ("--out", "run", "--memory", "16M", "--spill", "spill", "--set", "data.tokens=words")
    child = subprocess.Popen(
        [sys.executable, "-m", "regard", *COUNT, *flags], env=environment(), stdout=subprocess.DEVNULL
    )
    while child.poll() is None and not list(Path("spill").iterdir()):
        time.sleep(0.01)
    child.terminate()
    assert child.wait(timeout=60) == 143
    assert not list(Path("spill").iterdir())
    assert not Path("run").exists()
