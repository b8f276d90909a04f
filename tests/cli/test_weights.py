"""`--weights int8`: told where it is used, compared where scores are measured, refused where there are no weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import TEXT, call_here

import regard


def test_evaluate_tells_what_8_bits_change(trained: Path) -> None:
    own = json.loads(call_here("evaluate", str(trained), "--json").out)
    found = json.loads(call_here("evaluate", str(trained), "--weights", "int8", "--json").out)
    assert found["loss"] != own["loss"]
    for name in ("loss", "perplexity"):
        assert found["change"][name] == pytest.approx(found[name] - own[name], abs=1e-5)
    assert abs(found["change"]["loss"]) < 0.02
    shown = call_here("evaluate", str(trained), "--weights", "int8").out
    change = f"{found['change']['perplexity']:+.2f}"
    assert f"perplexity {found['perplexity']:.2f}, {change} by int8" in shown.splitlines()
    assert "by int8" not in call_here("evaluate", str(trained)).out


def test_generate_says_that_weights_have_8_bits(trained: Path) -> None:
    asked = ("generate", str(trained), "the", "--max-tokens", "9", "--seed", "3", "--weights", "int8")
    outcome = call_here(*asked)
    assert outcome.code == 0
    assert outcome.err.startswith("weights int8: ")
    assert "in 8 bits" in outcome.err
    assert call_here(*asked, "--quiet").err == ""
    run = regard.load(trained).with_weights("int8")
    assert outcome.out == run.generate("the", max_tokens=9, seed=3) + "\n"


def test_a_run_that_has_written_writes_with_8_bits_afterwards(trained: Path) -> None:
    run, fresh = regard.load(trained), regard.load(trained)
    run.generate("the", max_tokens=40, seed=3)
    asked: dict[str, int] = {"max_tokens": 9, "seed": 3}
    assert run.with_weights("int8").generate("the", **asked) == fresh.with_weights("int8").generate("the", **asked)


def test_other_names_and_models_without_weights_are_refused_in_one_line(trained: Path, here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    assert call_here("train", "my.txt", "--model", "ngram", "--out", "counted", "--quiet").code == 0
    for asked, told in (
        (("generate", str(trained), "the", "--weights", "int4"), "unknown weights 'int4', did you mean 'int8'?"),
        (("generate", "counted", "the", "--weights", "int8"), "ngram is fitted at once and has no weights"),
        (("evaluate", "counted", "--weights", "int8"), "ngram is fitted at once and has no weights"),
    ):
        outcome = call_here(*asked)
        assert outcome.code == 2, asked
        assert told in outcome.err
        assert outcome.err.count("\n") == 1
    narrow = regard.load(trained).with_weights("int8")
    with pytest.raises(regard.errors.UsageError, match="few bits already"):
        narrow.with_weights("int8")
