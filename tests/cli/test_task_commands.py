"""Every command on a run of every task, and what each task refuses: one line, the right code, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import TINY, call_here

USAGE, DATA = 2, 3
ANIMALS, VERBS = ("cat", "dog", "bird", "fox"), ("sees", "likes", "hears")
LINES = [f"{a} {v} {b}" for a in ANIMALS for v in VERBS for b in ANIMALS]
FILES = {
    "a.en": LINES,
    "a.de": [" ".join(reversed(line.split())) for line in LINES],
    "short.de": LINES[:-1],
    "p.tsv": [f"{line}\t{line[::-1]}" for line in LINES],
    "l.tsv": ["text\tlabel", *(f"{line}\t{'cats' if 'cat' in line else 'none'}" for line in LINES)],
    "new.tsv": ["text\tlabel", "cat sees fox\tcats", "dog\tzebra"],
    "t.conll": ["".join(f"{word}\t{'V' if word in VERBS else 'N'}\n" for word in line.split()) for line in LINES],
    "new.conll": ["cat\tN", "", "dog\tNN"],
    "bad.conll": ["cat\tN", "sees"],
    "empty.tsv": [],
    "empty.conll": [],
}
TRAINED = {"pairs": ["a.en", "--target", "a.de"], "labelled": ["l.tsv"], "tagged": ["t.conll"]}


def written(folder: Path) -> Path:
    for name, lines in FILES.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and a run of each task in `runs`."""
    folder = written(tmp_path_factory.mktemp("tasks"))
    for name, (data, *rest) in TRAINED.items():
        rest = [str(folder / word) if word in FILES else word for word in rest]
        outcome = call_here(
            *("train", str(folder / data), *rest, "--budget", "6steps", "--quiet", *TINY),
            *("--out", str(folder / "runs" / name), "--set", "train.evaluate_every=3"),
        )
        assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture
def there(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(runs)
    return runs


@pytest.mark.parametrize("name", TRAINED)
def test_a_run_of_a_task_is_shown_verified_and_explained_by_its_settings(name: str, there: Path) -> None:
    outcome = call_here("show", f"runs/{name}", "--verify")
    assert (outcome.code, outcome.err) == (0, "")
    assert "held-out loss" in outcome.out
    assert ("held-out chrf" if name == "pairs" else "held-out accuracy") in outcome.out
    facts = json.loads(call_here("show", f"runs/{name}", "--json").out)
    assert facts["task"] == name
    assert facts["tokenizer"]["vocab_size"] > 3
    assert (facts["state"] is None) == (name != "pairs")
    metric = "valid_chrf" if name == "pairs" else "valid_accuracy"
    told = [json.loads(line) for line in (there / "runs" / name / "metrics.jsonl").read_text().splitlines()]
    evaluated = [record for record in told if "valid_loss" in record]
    assert len(evaluated) == 2
    assert facts["best"] == max(evaluated, key=lambda record: (record[metric], -record["valid_loss"]))
    origin = call_here("show", f"runs/{name}", "--origin")
    assert origin.code == 0
    assert "data.task" in origin.out


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("argv", [["score", "RUN", "cat"], ["export", "RUN", "out.arpa"]])
def test_what_is_for_language_models_refuses_a_run_of_a_task(name: str, argv: list[str], there: Path) -> None:
    outcome = call_here(*(f"runs/{name}" if word == "RUN" else word for word in argv))
    assert (outcome.code, outcome.out) == (USAGE, "")
    needed = "text or pairs" if argv[0] == "score" else "text"
    told = f"runs/{name} is a run of the task {name}, and this needs one of {needed}"
    if (argv[0], name) == ("score", "pairs"):
        told = "a pair is scored: give SOURCE and TARGET with a TAB between them, and no other TAB"
    assert outcome.err == f"regard: error: {told}\n"
    assert not (there / "out.arpa").exists()


@pytest.mark.parametrize("name", TRAINED)
def test_lines_are_answered_in_their_order_and_one_for_each(name: str, there: Path) -> None:
    lines = ["fox sees cat", "", "dog", "cat likes bird hears cat sees dog"]
    outcome = call_here("generate", f"runs/{name}", stdin="\n".join(lines) + "\n")
    assert (outcome.code, outcome.err) == (0, "")
    answers = outcome.out.split("\n")[:-1]
    assert len(answers) == len(lines)
    for line, answer in zip(lines, answers, strict=True):
        if line:
            assert call_here("generate", f"runs/{name}", line).out == answer + "\n"
    assert call_here("generate", f"runs/{name}").code == USAGE


def test_the_texts_of_a_beam_come_with_their_scores(there: Path) -> None:
    argv = ("generate", "runs/pairs", "cat sees dog", "--beam", "4", "--n", "3", "--max-tokens", "5")
    (answer,) = json.loads(call_here(*argv, "--json").out)["answers"]
    texts = [answer, *answer["others"]]
    assert len(texts) == 3
    assert [text["score"] for text in texts] == sorted((text["score"] for text in texts), reverse=True)
    assert call_here(*argv).out.split("\n")[:-1] == [text["text"] for text in texts]


def test_pairs_with_gold_links_train_in_bfloat16_and_coverage_needs_attention(tmp_path: Path) -> None:
    argv = ("--size", "tiny", "--budget", "3steps", "--set", "train.precision=bfloat16", "--device", "cpu", "--quiet")
    for name, words in (("transformer", ""), ("seq2seq", "coverage ranks texts by their attention to the source")):
        out = str(tmp_path / name)
        trained = call_here("train", "world:translation?train=60&valid=8", "--model", name, "--out", out, *argv)
        assert trained.code == 0, trained.err
        looked = call_here("generate", out, "the dog sees", "--beam", "2", "--coverage", "0.2", "--max-tokens", "3")
        assert (looked.code, words in looked.err) == (USAGE if words else 0, True), looked.err
        assert looked.err.count("\n") == (1 if words else 0)


def test_a_temperature_that_was_asked_for_is_used(there: Path) -> None:
    argv = ("generate", "runs/pairs", "cat sees dog", "--max-tokens", "8", "--temperature")
    greedy = call_here(*argv, "0").out
    assert call_here(*argv[:-1]).out == greedy
    drawn = {call_here(*argv, "1.0", "--seed", str(seed)).out for seed in range(4)}
    assert drawn - {greedy}


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["train", "a.en", "--target", "short.de"], DATA, "a.en has 48 lines and short.de 47: short.de ended first"),
        (["train", "a.en,short.de"], DATA, "short.de ended first"),
        (["train", "a.en", "--target", "none.de"], DATA, "none.de"),
        (["train", "empty.tsv", "--task", "pairs"], DATA, "empty.tsv is empty"),
        (["train", "empty.tsv", "--task", "labelled"], DATA, "empty.tsv is empty"),
        (["train", "empty.conll"], DATA, "empty.conll is empty"),
        (["train", "bad.conll"], DATA, "bad.conll, line 2"),
        (["train", "a.en", "--task", "pairs"], DATA, "a.en, line 1"),
        (["train", "l.tsv", "--valid", "new.tsv"], DATA, "new.tsv, line 3: the label 'zebra'"),
        (["train", "t.conll", "--valid", "new.conll"], DATA, "new.conll, line 3: the tag 'NN'"),
        (["train", "p.tsv", "--valid", "none.tsv"], DATA, "none.tsv"),
        (["train", "p.tsv", "--set", "data.history=5"], USAGE, "data.history means nothing to the task pairs"),
        (["train", "p.tsv", "--set", "train.packed=true"], USAGE, "train.packed means nothing to the task pairs"),
        (["train", "l.tsv", "--set", "data.shared=false"], USAGE, "data.shared means nothing to the task labelled"),
        (["train", "t.conll", "--set", "data.tokens=bpe"], USAGE, "data.tokens means nothing to the task tagged"),
        (["train", "a.en", "--set", "data.tag=upos"], USAGE, "data.tag means nothing to the task text"),
        (["train", "p.tsv", "--model", "gpt"], USAGE, "gpt is for text, and p.tsv holds pairs"),
        (["train", "p.tsv", "--model", "classifier"], USAGE, "classifier is for labelled"),
        (["train", "p.tsv", "--task", "tagged", "--model", "transformer_"], USAGE, "did you mean 'transformer'"),
        (["train", "l.tsv", "--task", "text", "--model", "tagger"], USAGE, "tagger is for tagged"),
        (["train", "p.tsv", "--task", "pears"], USAGE, "did you mean 'pairs'"),
        (
            ["train", "p.tsv", "--set", "model.position=learned", "--set", "model.max_length=3"],
            DATA,
            "data.truncate=true",
        ),
        (["train", "--resume", "--out", "runs/pairs", "--model", "bahdanau"], USAGE, "model.name is transformer"),
        (["train", "--resume", "--out", "runs/pairs", "--task", "labelled"], USAGE, "data.task is pairs"),
        (["evaluate", "runs/labelled", "new.tsv"], DATA, "new.tsv, line 3: the label 'zebra'"),
        (["evaluate", "runs/tagged", "new.conll"], DATA, "new.conll, line 3: the tag 'NN'"),
        (["evaluate", "runs/labelled", "t.conll"], DATA, "t.conll"),
        (["evaluate", "runs/pairs", "a.en"], DATA, "two files"),
        (["evaluate", "runs/pairs", "a.en,short.de"], DATA, "short.de ended first"),
        (["evaluate", "runs/pairs", "world:stories"], USAGE, "holds text, not pairs"),
        (
            ["generate", "runs/labelled", "cat", "--beam", "2"],
            USAGE,
            "--beam means nothing to a run of the task labelled",
        ),
        (["generate", "runs/tagged", "cat", "--n", "2"], USAGE, "--n means nothing"),
        (["generate", "runs/pairs", "cat", "--stop", "x"], USAGE, "--stop means nothing"),
        (["generate", "runs/pairs", "cat", "--draft", "ngram"], USAGE, "--draft means nothing"),
        (["generate", "runs/pairs", "cat", "--n", "2"], USAGE, "n_best"),
        (["generate", "runs/pairs", "cat", "--length-penalty", "gnmt"], USAGE, "length_penalty ranks the texts of a"),
        (["generate", "runs/pairs", "cat", "--beam", "2", "--alpha", "1"], USAGE, "alpha is the strength of a length"),
    ],
)
def test_bad_input_is_one_line_with_the_right_code(argv: list[str], code: int, words: str, there: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in there.rglob("*")}
    rest = ["--quiet", *TINY] if argv[0] == "train" and "--resume" not in argv else []
    outcome = call_here(*argv, *rest)
    assert outcome.code == code, outcome.err
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert words in outcome.err
    assert {path: path.stat().st_mtime_ns for path in there.rglob("*")} == before


def test_every_model_is_listed_with_its_task_and_shape() -> None:
    cards = {
        card["name"]: (card["task"], card["shape"]) for card in json.loads(call_here("list", "--json").out)["models"]
    }
    assert cards["gpt"] == ("text", "1-N")
    assert cards["transformer"] == cards["seq2seq"] == cards["bahdanau"] == cards["gnmt"] == ("pairs", "N-M")
    assert cards["classifier"] == ("labelled", "N-1")
    assert cards["tagger"] == ("tagged", "N-N")
    assert all(shape for _, shape in cards.values())
    shown = call_here("show", "transformer").out
    assert "task pairs, shape N-M" in shown
    assert "my.txt" not in shown


def test_a_recipe_may_name_two_files_beside_it(there: Path, tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "r.toml").write_text('[data]\npath = "a.en,a.de"\n[model]\nsize = "tiny"\n[train]\nbudget = "1steps"\n')
    outcome = call_here("train", "--recipe", str(folder / "r.toml"), "--quiet", *TINY[2:], "--out", str(folder / "run"))
    assert outcome.code == 0, outcome.err
    assert json.loads((folder / "run" / "config.json").read_text())["data"]["task"] == "pairs"


def test_the_recipe_of_regard_new_names_every_setting_of_the_data_once() -> None:
    text = call_here("new", "-").out
    section = text.partition("[data]")[2].partition("[model]")[0]
    names = [line.lstrip("# ").partition(" ")[0] for line in section.strip().splitlines()]
    assert len(names) == len(set(names))
    assert {"path", "task", "target", "truncate", "label", "tag"} <= set(names)
