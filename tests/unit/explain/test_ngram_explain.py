"""Worked calculations of n-gram probabilities: by hand, against the model, and as the command prints them."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from calling import call_here, environment
from exact import load as golden

import regard
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.errors import UsageError
from regard.explain.ngram import NgramExplanation, explain_ngram
from regard.explain.ngram_lines import TokenExplanation
from regard.interop.arpa_read import read_arpa
from regard.models.ngram import NgramConfig, NgramModel
from regard.ngram.table import quantise
from regard.run.run import Run
from regard.tasks.text import PlainText, TextProcessor

COUNTED = golden("chain_rule")["ngram"]["own_count_example"]
SENTENCES = [line.removeprefix("<s> ").removesuffix(" </s>") for line in COUNTED["corpus"]]
STORIES = [
    "Today is a great day",
    "Today is a good day",
    "a great day is a day of great rest",
    "this is a great house and this is a great day",
    "is this a house",
]
TEXTS = ("Today is a great day", "a house of Today", "nothing is a great zebra rest", "day", "great great great")
COUNTING = ("mle", "witten_bell", "absolute", "kneser_ney", "modified_kneser_ney")
FORMS = [("add_k", True), *((smoothing, interpolate) for smoothing in COUNTING for interpolate in (True, False))]


def ids_of(tokenizer: Tokenizer, sentences: list[str]) -> np.ndarray:
    return np.concatenate([np.append(tokenizer.encode(line), tokenizer.eos_id) for line in sentences])


def fitted(sentences: list[str], kind: str = "words", **settings: Any) -> tuple[NgramModel, Tokenizer]:
    tokenizer = train_tokenizer(kind, sentences, vocab_size=None)
    model = NgramConfig(tokenizer.vocab_size, **settings).build()
    model.estimate(model.count(ids_of(tokenizer, sentences)))
    return model, tokenizer


def as_given(model: NgramModel, interpolate: bool) -> NgramModel:
    """The same numbers as another program would have given them: without counts."""
    rules = model.config.replace(smoothing="given", interpolate=interpolate)
    twin = rules.build()
    tensors = {
        key: torch.zeros(0, dtype=value.dtype) if key.endswith(("counts", "totals")) else value
        for key, value in model.state_dict().items()
    }
    twin.load_state_dict(tensors)
    return twin


def log_probs(model: NgramModel, tokenizer: Tokenizer, text: str) -> list[float]:
    """What the model itself says of a text and its end."""
    end = tokenizer.eos_id
    tokens = torch.tensor([[end, *tokenizer.encode(text).tolist(), end]])
    return model.log_probs(tokens, model.init_state(1))[0][0].tolist()


def hold_equal(model: NgramModel, tokenizer: Tokenizer, text: str) -> NgramExplanation:
    """The explanation, which must give what the model gives, in its numbers and in its printed lines."""
    found = explain_ngram(model, tokenizer, text)
    got = [token.log_prob for token in found.tokens]
    assert got == pytest.approx(log_probs(model, tokenizer, text), rel=0, abs=1e-12)
    for token in found.tokens:
        hold_together(token)
        assert worked_out(found.steps(token.position)) == pytest.approx(token.probability, rel=4e-3, abs=1e-9)
    return found


def hold_together(token: TokenExplanation) -> None:
    """Each order's numbers give its probability, which the next order builds on."""
    below = None
    for step in token.orders:
        if step.count is not None and step.seen:
            assert step.discount is not None
            assert step.divisor
            assert (step.count - step.discount) / step.divisor == pytest.approx(step.alpha, abs=1e-12)
        if step.lower is not None:
            assert below is None or step.lower == below
            assert step.probability == step.alpha + step.gamma * step.lower
        else:
            assert step.probability == step.alpha
        below = step.probability
    assert [step.order for step in token.orders] == sorted(step.order for step in token.orders)


def worked_out(lines: list[str]) -> float:
    """p by doing what the lines say: each names a probability, how to work it out, and what comes out."""
    known: dict[str, float] = {}
    for line in (line.strip() for line in lines if line.startswith("  ")):
        name, calculation, *rest = line.split(" = ")
        for other, value in known.items():
            calculation = calculation.replace(other, repr(value))
        value = arithmetic(calculation)
        for part in rest:  # the same in numbers, and the result
            assert arithmetic(part) == pytest.approx(value, rel=4e-3, abs=1e-9)
        known[name] = value
    last = re.fullmatch(r"p = (\S+), log p = (\S+)", lines[-1])
    assert last is not None
    assert float(last[1]) == pytest.approx(value, rel=4e-3, abs=1e-9)
    assert float(last[2]) == pytest.approx(math.log(value) if value else -math.inf, rel=1e-3, abs=4e-3)
    return value


def arithmetic(text: str) -> float:
    assert re.fullmatch(r"[-+0-9.e/() x]+", text), text
    return eval(text.replace("x", "*"))


def test_maximum_likelihood_is_the_worked_example():
    model, tokenizer = fitted(SENTENCES, order=2, smoothing="mle", closed=True)
    found = explain_ngram(model, tokenizer, "A B")
    expected = [Fraction(COUNTED["bigram_mle"][key]) for key in ("P(A|<s>)", "P(B|A)", "P(</s>|B)")]
    assert [token.probability for token in found.tokens] == pytest.approx([float(p) for p in expected], abs=1e-12)
    assert math.exp(found.log_prob) == pytest.approx(float(Fraction(COUNTED["probability_of"]["<s> A B </s>"])))
    assert [token.orders[-1].count for token in found.tokens] == [2, 2, 2]
    assert "  p(B | A) = 2 / 5 + 0 x p(B) = 0.4 + 0 = 0.4" in found.steps(2)


def test_add_one_is_the_worked_example():
    model, tokenizer = fitted(SENTENCES, order=2, smoothing="add_k", closed=True)
    found = explain_ngram(model, tokenizer, "A B")
    expected = [Fraction(COUNTED["bigram_add_one"][key]) for key in ("P(A|<s>)", "P(B|A)", "P(</s>|B)")]
    assert [token.probability for token in found.tokens] == pytest.approx([float(p) for p in expected], abs=1e-12)
    # 2 of 5, and 1 for each of A, B and </s>: 2 / 8 + 3 / 8 x 1/3 = 3 / 8.
    assert found.steps(2)[2:] == [
        "order 2: A B has count c = 2, D = 0, N = 8",
        "  p(B | A) = 2 / 8 + 0.375 x 1/3 = 0.25 + 0.125 = 0.375",
        "p = 0.375, log p = -0.9808",
    ]


def test_kneser_ney_by_hand():
    """Four bigrams occur once and four twice: D = 4 / (4 + 2 x 4) = 1/3.

    <s>, A and B come before A and before B, A and B before </s>: continuation counts 3, 3 and 2, none of them 1, so
    that their discount is 1/2.
    """
    model, tokenizer = fitted(SENTENCES, order=2, smoothing="kneser_ney")
    assert tokenizer.vocab_size == 4
    found = hold_equal(model, tokenizer, "A B")
    p_b = 2.5 / 8 + 1.5 / 8 / 4
    p_b_after_a = (2 - 1 / 3) / 5 + 3 * (1 / 3) / 5 * p_b
    assert found.tokens[1].probability == pytest.approx(p_b_after_a, abs=1e-12)
    assert found.steps(2) == [
        "p(B | A): longest match of order 2, path 2",
        "kneser_ney, interpolated: p(w | h) = (c - D) / N + gamma x p(w | h'), N = the counts after h",
        "order 1: B has continuation count c = 3, D = 0.5, N = 8",
        "  p(B) = (3 - 0.5) / 8 + 0.1875 x 1/4 = 0.3125 + 0.04688 = 0.3594",
        "order 2: A B has count c = 2, D = 0.3333, N = 5",
        "  p(B | A) = (2 - 0.3333) / 5 + 0.2 x p(B) = 0.3333 + 0.07188 = 0.4052",
        "p = 0.4052, log p = -0.9034",
    ]


def test_back_off_by_hand():
    """B A was seen once with D = 1/3 and never an unknown word: what is left after B, 3 x 1/3 of 4, goes to it."""
    model, tokenizer = fitted(SENTENCES, order=2, smoothing="absolute", interpolate=False)
    found = hold_equal(model, tokenizer, "B A B zebra")
    assert found.steps(2)[2:] == [
        "order 2: B A has count c = 1, D = 0.3333, N = 4",
        "  p(A | B) = (1 - 0.3333) / 4 = 0.1667",
        "p = 0.1667, log p = -1.792",
    ]
    # No count of a word is 1: D = 1/2 each, so 1.5 / 12 is left for four tokens. After B all but <unk> were seen.
    (word, pair) = found.tokens[3].orders
    assert word.probability == pytest.approx(1.5 / 12 / 4, abs=1e-12)
    assert pair.probability == pytest.approx(0.25, abs=1e-12)
    assert found.tokens[3].path == (2, 1, 0)


@pytest.mark.parametrize(("smoothing", "interpolate"), FORMS)
@pytest.mark.parametrize("settings", [{}, {"prune": (0, 0, 1)}, {"closed": True}, {"order": 1}, {"order": 5}])
def test_the_last_line_is_the_probability_of_the_model(smoothing: str, interpolate: bool, settings: dict[str, Any]):
    model, tokenizer = fitted(STORIES, **({"order": 3, "smoothing": smoothing, "interpolate": interpolate} | settings))
    for text in TEXTS:
        hold_equal(model, tokenizer, text)


@pytest.mark.parametrize("interpolate", [True, False])
def test_given_probabilities_are_explained_without_counts(interpolate: bool):
    counted, tokenizer = fitted(STORIES, order=3, smoothing="absolute", interpolate=interpolate)
    model = as_given(counted, interpolate)
    for text in TEXTS:
        found = hold_equal(model, tokenizer, text)
        assert [token.path for token in found.tokens] == [
            token.path for token in explain_ngram(counted, tokenizer, text).tokens
        ]
        assert {step.count for token in found.tokens for step in token.orders} == {None}


def test_what_an_arpa_file_gives_whole_is_said_once(tmp_path: Path):
    file = tmp_path / "tiny.arpa"
    file.write_text(
        "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-0.5\t</s>\n-0.3\ta\t-0.25\n\n"
        "\\2-grams:\n-0.1\t<s> a\n-0.2\ta a\n\n\\end\\\n"
    )
    model, tokenizer = read_arpa(file)
    found = hold_equal(model, tokenizer, "a a")
    # 10^-0.1 is listed; </s> after a is not: 10^-0.25 x 10^-0.5 = 0.5623 x 0.3162.
    assert found.steps(1)[2:] == [
        "order 2: <s> a was seen; its counts are not kept",
        "  p(a | <s>) = 0.7943",
        "p = 0.7943, log p = -0.2303",
    ]
    assert found.steps(3)[3::2] == ["  p(</s>) = 0.3162", "  p(</s> | a) = 0.5623 x p(</s>) = 0.1778"]


def test_a_quantised_model_is_explained():
    model, tokenizer = fitted(STORIES, order=3)
    quantise(model.table)
    for text in TEXTS:
        hold_equal(model, tokenizer, text)


def test_a_model_that_counted_nothing_is_uniform():
    tokenizer = train_tokenizer("words", STORIES, vocab_size=None)
    found = explain_ngram(NgramConfig(tokenizer.vocab_size, order=3).build(), tokenizer, "Today is")
    assert [token.probability for token in found.tokens] == pytest.approx([1 / tokenizer.vocab_size] * 3)
    assert found.tokens[1].path == (3, 2, 1, 0)


@pytest.mark.parametrize("kind", ["bytes", "chars"])
def test_other_tokens_than_words(kind: str):
    model, tokenizer = fitted(STORIES, kind, order=4)
    found = hold_equal(model, tokenizer, "a great é")
    assert found.rows()[1][1] == "␣"


def test_the_path_goes_from_the_longest_context_to_the_one_that_matched():
    model, tokenizer = fitted(STORIES, order=3)
    found = explain_ngram(model, tokenizer, "Today is a good rest zebra day")
    paths = {token.text: token.shown_path for token in found.tokens}
    assert paths == {
        "Today": "2",  # the sentence has no more before it
        "is": "3",
        "a": "3",
        "good": "3",
        "rest": "3 -> 2 -> 1",  # never after good
        "<unk>": "3 -> 2 -> 1 -> 0",
        "day": "3 -> 2 -> 1",  # nothing was ever seen after <unk>
        "</s>": "3 -> 2",  # day ends sentences, but not after <unk>
    }
    assert [token.matched for token in found.tokens] == [2, 3, 3, 3, 1, 0, 1, 2]
    assert "order 2: nothing was seen after <unk>" in found.steps(7)
    assert "order 3: rest was not seen after a good" in found.steps(5)


def test_counts_are_called_what_they_are():
    model, tokenizer = fitted(STORIES, order=3, smoothing="modified_kneser_ney")
    found = explain_ngram(model, tokenizer, "Today is a")
    kinds = [[(step.order, step.continuation) for step in token.orders] for token in found.tokens]
    # <s> Today has nothing before it, so that its count stays a count.
    assert kinds[0] == [(1, True), (2, False)]
    assert kinds[1] == [(1, True), (2, True), (3, False)]
    assert found.tokens[0].orders[1].count == 2
    # "is" comes after Today, day and this and begins a sentence: four different tokens.
    assert found.tokens[1].orders[0].count == 4
    absolute, tokenizer = fitted(STORIES, order=3, smoothing="absolute")
    plain = explain_ngram(absolute, tokenizer, "Today is a").tokens[1]
    assert not any(step.continuation for step in plain.orders)
    assert plain.orders[0].count == 6


def test_numbers_have_at_most_four_digits():
    model, tokenizer = fitted(STORIES, order=3)
    found = explain_ngram(model, tokenizer, TEXTS[0])
    lines = [line for token in found.tokens for line in found.steps(token.position)]
    for number in re.findall(r"\d+\.\d+", "\n".join(lines)):
        assert len(number.replace(".", "").lstrip("0")) <= 4, number


def test_a_table_and_an_object_for_the_whole_text(capsys: pytest.CaptureFixture[str]):
    model, tokenizer = fitted(STORIES, order=3)
    found = explain_ngram(model, tokenizer, "Today is")
    assert [row[:4] for row in found.rows()] == [
        ("1", "Today", "2", "2"),
        ("2", "is", "3", "3"),
        ("3", "</s>", "1", "3 -> 2 -> 1"),
    ]
    found.show()
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["position", "token", "matched", "path", "p", "log", "p"]
    assert "over 3 tokens with the end" in shown
    read = json.loads(json.dumps(found.to_dict()))
    assert read == found.to_dict()
    assert read["log_prob"] == pytest.approx(sum(log_probs(model, tokenizer, "Today is")), abs=1e-12)
    (first, *_) = read["tokens"]
    assert first["orders"][1]["context"] == ["<s>"]
    assert first["steps"] == found.steps(1)


def test_a_position_beyond_the_text_is_refused():
    model, tokenizer = fitted(STORIES, order=3)
    found = explain_ngram(model, tokenizer, "Today is")
    for position in (0, 4, -1):
        with pytest.raises(UsageError, match=f"position {position}: the text has positions 1 to 3, the last one"):
            found.steps(position)


def test_another_tokenizer_is_refused():
    model, _ = fitted(STORIES, order=3)
    with pytest.raises(UsageError, match="explain a text with the tokenizer that the model was fitted with"):
        explain_ngram(model, train_tokenizer("words", SENTENCES, vocab_size=None), "A B")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> NgramModel:
    """A counted run under the name `counted` and a neural one under the name `neural`, as if in folders."""
    model, tokenizer = fitted(STORIES, order=3)
    neural = regard.build("lstm", vocab_size=tokenizer.vocab_size, size="tiny")

    def load(path: str, *, device: str) -> Any:
        name, part = ("ngram", model) if path == "counted" else ("lstm", neural)
        return Run(Path(path), {"model": {"name": name}, "data": {}}, PlainText(), part, TextProcessor(tokenizer))

    monkeypatch.setattr("regard.run.run.load", load)
    return model


@pytest.mark.usefixtures("run")
def test_the_command_shows_the_path_of_every_token():
    outcome = call_here("explain", "counted", "Today is a zebra")
    assert outcome.code == 0, outcome.err
    lines = [line.split() for line in outcome.out.splitlines()]
    head = lines.index(["position", "token", "matched", "path", "p", "log", "p"])
    assert lines[head + 4][:7] == ["4", "<unk>", "0", "3", "->", "2", "->"]
    assert lines[head + 6][:2] == ["log", "p"]
    assert call_here("explain", "counted", stdin="Today is a zebra\n").out == outcome.out


@pytest.mark.usefixtures("run")
def test_the_command_works_out_one_token():
    outcome = call_here("explain", "counted", "Today is a", "--position", "2")
    assert outcome.code == 0, outcome.err
    assert "p(is | <s> Today): longest match of order 3, path 3" in outcome.out
    assert re.search(r"p = \S+, log p = \S+$", outcome.out)
    found = json.loads(call_here("explain", "counted", "Today is a", "--position", "2", "--json").out)["about"]
    assert all(line.split()[0] in outcome.out for line in found["steps"])
    assert (found["text"], found["token"], found["matched_order"], found["path"]) == ("Today is a", "is", 3, [3])
    whole = json.loads(call_here("explain", "counted", "Today is a", "--json").out)["about"]
    assert whole["tokens"][1].items() <= (found | {"text": found["token"]}).items()


def test_a_run_in_a_folder_is_explained_as_it_is_scored(tmp_path: Path):
    text, folder = tmp_path / "my.txt", str(tmp_path / "run")
    text.write_text("\n".join(STORIES * 3) + "\n", encoding="utf-8")
    trained = call_here("train", str(text), "--model", "ngram", "--out", folder, "--quiet", "--device", "cpu")
    assert trained.code == 0, trained.err
    explained = json.loads(call_here("explain", folder, "a great house", "--json").out)["about"]
    scored = json.loads(call_here("score", folder, "a great house", "--json").out)
    log_p = [token["log_prob"] for token in explained["tokens"]]
    assert log_p[:-1] == pytest.approx([token["log_prob"] for token in scored["tokens"]], abs=1e-12)
    assert explained["tokens"][-1]["text"] == "</s>"


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("neural", "Today", "--view", "backoff"), "a lstm model has no backoff to show; this run can show"),
        (("counted", "Today", "--view", "atention"), "did you mean 'attention'?"),
        (("counted", "Today", "--position", "9"), "position 9: the text has positions 1 to 2"),
        (("counted",), "there is nothing to explain"),
    ],
)
def test_what_cannot_be_explained_is_said_in_one_line(argv: tuple[str, ...], message: str):
    outcome = call_here("explain", *argv)
    assert outcome.code == UsageError.exit_code
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert message in outcome.err


@pytest.mark.usefixtures("run")
def test_of_an_unknown_view_every_known_one_is_named_once():
    told = call_here("explain", "counted", "Today", "--view", "nothing").err
    named = told.partition("known: ")[2].partition(";")[0].split(", ")
    assert "steps" in named
    assert len(named) == len(set(named))


def test_help_costs_no_torch():
    program = (
        "import sys, regard.cli.main as cli\n"
        "code = cli.main(['explain', '--help'])\n"
        "heavy = {'torch', 'numpy', 'rich'} & set(sys.modules)\n"
        "sys.exit(code or (f'imported {heavy}' if heavy else 0))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert b"--position" in done.stdout
