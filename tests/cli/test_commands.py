"""Every command in plain use: what it prints for people and for programs."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from calling import TEXT, TINY, call_here

import regard
from regard.kernels import operators

COMMANDS = (
    "train",
    "generate",
    "score",
    "explain",
    "evaluate",
    "export",
    "check",
    "list",
    "show",
    "new",
    "bench",
    "doctor",
    "lab",
    "lecture",
    "serve",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_has_the_common_options(command: str):
    outcome = call_here(command, "--help")
    assert outcome.code == 0
    for option in ("--json", "--quiet", "--debug", "--import"):
        assert option in outcome.out
    assert ("--device" in outcome.out) is (
        command in ("train", "generate", "score", "explain", "evaluate", "lab", "bench", "check", "serve")
    )
    assert ("--seed" in outcome.out) is (command in ("train", "generate", "explain"))


def test_no_command_is_a_call_for_help():
    outcome = call_here()
    assert outcome.code == 0
    assert all(command in outcome.out for command in COMMANDS)


def test_the_version_is_the_packages():
    assert call_here("--version").out.strip() == regard.__version__


def test_generate_writes_the_prompt_and_goes_on(trained: Path):
    outcome = call_here("generate", str(trained), "the cat", "--max-tokens", "8", "--seed", "3")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("the cat")
    assert len(outcome.out) > len("the cat\n")
    assert outcome.out == call_here("generate", str(trained), "the cat", "--max-tokens", "8", "--seed", "3").out
    assert outcome.out != call_here("generate", str(trained), "the cat", "--max-tokens", "8", "--seed", "4").out


def test_generate_streams_what_it_would_print_at_once(trained: Path):
    streamed = call_here("generate", str(trained), "the dog", "--max-tokens", "9").out
    (text,) = json.loads(call_here("generate", str(trained), "the dog", "--max-tokens", "9", "--json").out)["texts"]
    assert text["text"] + "\n" == streamed
    assert text["prompt"] + text["continuation"] == text["text"]
    assert text["log_prob"] < 0


def test_what_could_not_be_made_fast_is_counted_for_programs(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(operators, "_fallbacks", Counter())
    monkeypatch.setattr(operators, "_unmade", Counter())

    def told(*argv: str) -> dict[str, int]:
        return json.loads(call_here(*argv, "--json").out)["fallbacks"]

    def broken(_batch: object, _state: object) -> NoReturn:
        raise RuntimeError("no compiler")

    write = ("generate", str(trained), "the dog", "--max-tokens", "3")
    train = ("train", str(trained.parent / "my.txt"), "--budget", "2steps", "--quiet", *TINY)
    assert told(*write) == told(*train, "--out", str(tmp_path / "a")) == {}
    monkeypatch.setattr(torch, "compile", lambda _step: broken)
    compiled = ("--set", "train.compile=true")
    assert told(*train, "--out", str(tmp_path / "b"), *compiled) == {"compile": 1}
    operators.count_fallback("graphs")
    assert told(*write) == {"graphs": 1}


def test_generate_reads_a_prompt_from_stdin_whole_or_by_lines(trained: Path):
    whole = call_here("generate", str(trained), "--max-tokens", "3", stdin="the cat\nthe dog\n")
    assert whole.out.startswith("the cat\nthe dog")
    by_line = call_here("generate", str(trained), "--max-tokens", "3", "--lines", "--json", stdin="the cat\nthe dog\n")
    assert [text["prompt"] for text in json.loads(by_line.out)["texts"]] == ["the cat", "the dog"]


def test_generate_with_a_draft_writes_the_same_greedy_text_and_tells_what_the_draft_was_good_for(trained: Path):
    options = (str(trained), "the cat sat on the cat sat", "--temperature", "0", "--max-tokens", "40")
    alone = call_here("generate", *options)
    for draft in ("ngram", str(trained)):
        drafted = call_here("generate", *options, "--draft", draft, "--draft-tokens", "3")
        assert drafted.out == alone.out
        assert re.search(r"^draft: \d+ of \d+ proposed tokens accepted .* tokens per read of the model", drafted.err)
        told = json.loads(call_here("generate", *options, "--draft", draft, "--json").out)["draft"]
        assert told["tokens"] == 40
        assert told["accepted"] <= told["proposed"]
        assert told["reads"] < 40
    assert call_here("generate", *options, "--draft", "ngram", "--quiet").err == ""


def test_a_draft_that_cannot_be_used_is_refused_in_one_line(trained: Path, here: Path):
    (here / "other.txt").write_text(TEXT.upper(), encoding="utf-8")
    made = call_here("train", "other.txt", "--model", "ngram", "--out", "other", "--quiet")
    assert made.code == 0, made.err
    for flags, told in (
        (("--draft", "other"), f"other cannot draft for {trained}: their tokenizers differ"),
        (("--draft", "nowhere"), "nowhere"),
        (("--draft", "ngram", "--draft-tokens", "0"), "at least 1 token, found 0"),
        (("--draft-tokens", "3"), "name one with --draft"),
        (("--draft", "ngram", "--beam", "3"), "leave out draft or beam"),
    ):
        outcome = call_here("generate", str(trained), "the", *flags)
        assert outcome.code in (2, 4), flags
        assert told in outcome.err
        assert outcome.err.count("\n") == 1


def test_generate_makes_several_texts_and_searches_with_a_beam(trained: Path):
    several = json.loads(call_here("generate", str(trained), "a", "--n", "3", "--max-tokens", "5", "--json").out)
    assert len({text["text"] for text in several["texts"]}) > 1
    beam = call_here("generate", str(trained), "a", "--beam", "3", "--n", "2", "--max-tokens", "5", "--json")
    first, second = json.loads(beam.out)["texts"]
    assert first["log_prob"] >= second["log_prob"]
    greedy = call_here("generate", str(trained), "a", "--temperature", "0", "--max-tokens", "5").out
    assert call_here("generate", str(trained), "a", "--beam", "1", "--max-tokens", "5").out == greedy


def test_a_stop_string_ends_the_text_and_is_not_part_of_it(trained: Path):
    whole = call_here("generate", str(trained), "the", "--max-tokens", "30", "--temperature", "0").out
    stop = whole[len("the") + 3]
    cut = call_here("generate", str(trained), "the", "--max-tokens", "30", "--temperature", "0", "--stop", stop).out
    assert cut == whole[: whole.index(stop, len("the"))] + "\n"


def test_score_shows_the_chain_rule(trained: Path):
    found = json.loads(call_here("score", str(trained), "the cat sat", "--json").out)
    log_probs = [token["log_prob"] for token in found["tokens"]]
    assert len(log_probs) == len("the cat sat")
    assert found["log_prob"] == pytest.approx(sum(log_probs))
    assert found["tokens"][-1]["log_prob_so_far"] == pytest.approx(found["log_prob"])
    assert found["perplexity"] == pytest.approx(2.718281828459045 ** (-sum(log_probs) / len(log_probs)))
    table = call_here("score", str(trained), stdin="the cat sat").out
    assert "so far" in table
    assert "bits per character" in table
    assert len(table.splitlines()) == 1 + len("the cat sat") + 1


def test_evaluate_has_plain_keys(trained: Path, here: Path):
    own = json.loads(call_here("evaluate", str(trained), "--json").out)
    assert {"loss", "perplexity", "bits_per_byte", "bits_per_character", "tokens"} <= own.keys()
    (here / "other.txt").write_text("zebras quiz jukeboxes . " * 40, encoding="utf-8")
    other = json.loads(call_here("evaluate", str(trained), "other.txt", "--json").out)
    assert other["loss"] > own["loss"], "the run has never seen such a text"
    assert "perplexity" in call_here("evaluate", str(trained)).out


def test_evaluate_reads_all_of_the_text_it_is_given(trained: Path, here: Path):
    (here / "other.txt").write_text("the cat sat on the mat", encoding="utf-8")
    found = json.loads(call_here("evaluate", str(trained), "other.txt", "--json").out)
    assert found["tokens"] in (len("the cat sat on the mat"), len("the cat sat on the mat") + 1)


def test_show_tells_what_a_run_is_and_where_its_settings_come_from(trained: Path):
    facts = json.loads(call_here("show", str(trained), "--json", "--verify").out)
    assert facts["config"]["model"]["name"] == "gpt"
    assert facts["parameters"] > 0
    assert facts["state"]["grows"] is True
    assert facts["last"]["step"] == 30
    assert set(facts["files"].values()) == {"ok"}
    origins = call_here("show", str(trained), "--origin").out
    rows = {line.split()[0]: line for line in origins.splitlines() if line.strip()}
    assert rows["model.size"].endswith("flag --size")
    assert rows["train.length"].endswith("--set")
    assert rows["train.budget"].endswith("flag --budget")
    assert rows["model.d_model"].endswith("size tiny")
    assert rows["data.documents"].endswith("default")
    assert "regard generate" in call_here("show", str(trained)).out


def test_the_share_of_padding_is_told_when_a_run_ends_and_when_it_is_shown(here: Path):
    words = ["good", "bad", "so", "very"]
    lines = [f"{n % 2}\t{' '.join(words[(n + k) % 4] for k in range(1 + n % 7))}" for n in range(200)]
    (here / "labels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    flags = ("--size", "tiny", "--budget", "12steps", "--set", "train.batch_size=4", "--out", "labelled", "--quiet")
    made = call_here("train", "labels.tsv", *flags, "--json")
    assert made.code == 0, made.err
    told = json.loads(made.out)["padding"]
    assert 0 <= told < 0.05
    assert json.loads(call_here("show", "labelled", "--json").out)["last"]["padding"] == told
    assert re.search(rf"padding +{told:.1%} of the batches", call_here("show", "labelled").out)


def test_show_names_the_settings_of_a_model():
    facts = json.loads(call_here("show", "lstm", "--json").out)
    assert facts["settings"]["n_layers"]
    assert set(facts["parameters"]) == set(facts["sizes"])
    assert "model.n_layers" in call_here("show", "lstm").out


def test_list_names_every_model_mixer_and_world():
    found = json.loads(call_here("list", "--json").out)
    assert {card["name"] for card in found["models"]} >= set(regard.core.registry.MODELS)
    gpt = next(card for card in found["models"] if card["name"] == "gpt")
    assert gpt["parameters"]["paper"] == 124_439_808
    assert {card["name"] for card in found["worlds"]} >= {"stories", "ab"}
    assert {card["name"] for card in found["recipes"]} >= {"awd-lstm", "epf"}
    assert all(card["summary"] for part in found.values() for card in part)
    plain = call_here("list").out
    assert "124M" in plain
    assert "attention" in plain


def test_check_prints_a_table_and_fails_on_a_wrong_mixer(here: Path):
    good = call_here("check", "mean")
    assert good.code == 0
    assert "causality" in good.out
    (here / "peeking_mixer.py").write_text(PEEKING, encoding="utf-8")
    bad = call_here("check", "peeking_mixer:Peeking")
    assert bad.code == 1
    assert "causality did not hold: " in bad.out
    found = json.loads(call_here("check", "peeking_mixer:Peeking", "--json").out)
    assert found["held"] is False


PEEKING = """
from torch import nn
from regard.core.mixer import Mixer
from regard.core.state import Position, advance, zero_position

class Peeking(Mixer):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(8, 8)

    def init_state(self, batch_size):
        return Position(zero_position(batch_size))

    def forward(self, x, state, context):
        return self.map(x) + x.mean(1, keepdim=True), Position(advance(state.position, x.shape[1], context.lengths))
"""


def test_new_writes_a_recipe_that_trains_and_never_overwrites(here: Path):
    assert call_here("new", "my.toml").code == 0
    text = (here / "my.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["model"]["name"] == "gpt"
    again = call_here("new", "my.toml")
    assert again.code == 2
    assert (here / "my.toml").read_text(encoding="utf-8") == text
    assert call_here("new", "own.toml", "--recipe", "epf").code == 0
    assert tomllib.loads((here / "own.toml").read_text(encoding="utf-8"))["train"]["ensemble"] == 4
    wanted = text.replace('path = "world:stories"', 'path = "my.txt"').replace('size = "small"', 'size = "tiny"')
    wanted = wanted.replace("# batch_size = 32", "batch_size = 2")
    (here / "my.toml").write_text(wanted, encoding="utf-8")
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    outcome = call_here("train", "--recipe", "my.toml", "--budget", "1steps", "--set", "train.length=8", "--json")
    assert outcome.code == 0, outcome.err
    config = json.loads((here / "runs" / "gpt" / "config.json").read_text(encoding="utf-8"))
    assert config["train"]["batch_size"] == 2
    assert config["origins"]["train.batch_size"] == "recipe my.toml"


def test_train_takes_the_next_free_name_and_tells_what_comes_next(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    first = call_here("train", "my.txt", "--model", "rnn", "--budget", "2steps", *TINY)
    assert first.code == 0, first.err
    assert "Next:" in first.out
    assert re.search(r"regard generate runs/rnn 'the \w+ sat'", first.out), "with words of the text itself"
    second = json.loads(call_here("train", "my.txt", "--model", "rnn", "--budget", "2steps", "--json", *TINY).out)
    assert second["run"] == "runs/rnn-2"
    assert second["step"] == 2


def test_train_goes_on_with_a_run_under_a_larger_budget(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    assert call_here("train", "my.txt", "--budget", "2steps", "--quiet", *TINY).out == "runs/gpt\n"
    again = call_here("train", "--resume", "--budget", "4steps", "--json")
    assert json.loads(again.out)["step"] == 4, again.err
    other = call_here("train", "--resume", "--out", "runs/gpt", "--set", "train.batch_size=8")
    assert other.code == 2
    assert "train.batch_size" in other.err


def test_train_on_a_world_tells_the_distance_to_the_optimum(here: Path):
    address = "world:stories?train=50&valid=5"
    outcome = call_here("train", address, "--model", "dan", "--budget", "3steps", "--json", *TINY)
    found = json.loads(outcome.out)
    assert found["excess"] > 0
    assert found["optimal_loss"] > 0
    report = json.loads(call_here("evaluate", found["run"], "--json").out)
    assert report["excess"] == pytest.approx(report["loss"] - report["optimal_loss"])


def test_a_text_may_come_from_stdin_and_is_then_gone(here: Path):
    assert call_here("train", "-", "--model", "gru", "--budget", "1steps", "--quiet", *TINY, stdin=TEXT).code == 0
    outcome = call_here("evaluate", "runs/gru")
    assert outcome.code == 2
    assert "standard input" in outcome.err
    assert call_here("evaluate", "runs/gru", "-", stdin=TEXT).code == 0


TOY = """
from regard.core.registry import register
from regard.core.stack import StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.mixers.lstm import LstmConfig
from regard.models.language import LanguageModelConfig

@register("toy", sizes={"tiny": {"d_model": 8}, "small": {}}, paper="none")
def toy(vocab_size: int, *, d_model: int = 16) -> LanguageModelConfig:
    \"\"\"A model from outside the package.\"\"\"
    return LanguageModelConfig(EmbeddingConfig(vocab_size, d_model), StackConfig(d_model, (LstmConfig(d_model),)))
"""


def test_a_model_from_outside_trains_generates_scores_and_is_checked(here: Path):
    (here / "toy_model.py").write_text(TOY, encoding="utf-8")
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    before = call_here(
        "--import", "toy_model", "train", "my.txt", "--model", "toy", "--budget", "2steps", "--quiet", *TINY
    )
    assert before.code == 0, before.err
    assert call_here("generate", "runs/toy", "the", "--max-tokens", "2", "--import", "toy_model").code == 0
    assert call_here("score", "runs/toy", "the cat", "--import", "toy_model").code == 0
    assert call_here("evaluate", "runs/toy").code == 0
    assert call_here("check", "toy").code == 0
    assert "A model from outside" in call_here("list").out
