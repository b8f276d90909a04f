"""The plug-in of `examples/plugin`, installed, goes through every verb; nothing of regard is told of it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import TEXT, TINY, Call, call_here, commands_of, conversation, environment

from open_lab import lab_process
from plugin_example import PLUGIN, installed

GRADED = (PLUGIN / "meals.tsv").read_text(encoding="utf-8")
PAGES = (PLUGIN.parents[1] / "CONTRIBUTING.md", PLUGIN / "README.md")
ELSEWHERE = ("check", "lab")  # commands of the pages that other tests here run
GENERAL = {"next", "forgetting", "meaning", "drop", "shuffle", "future"}
SHORT = ("--size", "tiny", "--device", "cpu", "--set", "train.batch_size=4")
STEPS = ("--size", "tiny", "--device", "cpu", "--budget", "6steps", "--quiet")
RUNS = ("runs/text", "runs/grades")
TYPED = "the soup was perfect"


class Installed:
    """A folder to work in, and a process in whose environment the plug-in is installed."""

    def __init__(self, folder: Path, call: Call, path: str) -> None:
        self.folder, self.call, self.path = folder, call, path

    def done(self, *argv: str) -> str:
        outcome = self.call(*argv)
        assert outcome.code == 0, (argv, outcome.err)
        return outcome.out

    def told(self, *argv: str) -> Any:
        return json.loads(self.done(*argv, "--json"))


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """With a text, graded texts, and a run of each."""
    here, target = tmp_path_factory.mktemp("work"), installed(tmp_path_factory.mktemp("site"))
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "meals.tsv").write_text(GRADED, encoding="utf-8")
    path = f"{environment()['PYTHONPATH']}:{target}"
    with conversation(here, PYTHONPATH=path) as call:
        found = Installed(here, call, path)
        found.done("train", "my.txt", "--model", "retnet", *TINY, "--budget", "4steps", "--quiet", "--out", "runs/text")
        found.done("train", "meals.tsv", *STEPS, "--out", "runs/grades")
        yield found


def test_all_its_parts_are_listed(plugin: Installed):
    told = plugin.told("list")
    names = {part: [card["name"] for card in told[part]] for part in told}
    for part, own in (
        ("models", {"retnet", "grader"}),
        ("mixers", {"retention"}),
        ("tasks", {"ordinal"}),
        ("looks", {"decay"}),
        ("studies", {"half_life"}),
    ):
        assert own <= set(names[part]), part
    ordinal = {"name": "ordinal", "shape": "N-1", "metric": "mae", "model": "grader"}
    assert ordinal.items() <= told["tasks"][-1].items()
    assert "task ordinal, shape N-1" in plugin.done("show", "grader")


def test_its_mixer_and_its_models_keep_every_law(plugin: Installed):
    told = plugin.told("check", "retention", "retention-fast", "retnet", "grader")
    assert told["held"]
    position = [one for one in told["results"] if one["law"] == "position" and one["held"]]
    assert {one["subject"] for one in position} >= {"retention", "retention-fast", "retnet"}


def test_a_run_of_its_model_goes_on_writes_scores_and_is_evaluated(plugin: Installed):
    card = plugin.told("train", "--resume", "--out", "runs/text", "--budget", "6steps")
    assert (card["step"], card["model"]) == (6, "retnet")
    assert plugin.done("generate", "runs/text", "the cat", "--max-tokens", "8").startswith("the cat")
    scored = plugin.told("score", "runs/text", "the cat sat")
    assert scored["log_prob"] < 0
    assert plugin.told("evaluate", "runs/text")["loss"] > 0


def test_a_run_of_its_task_goes_on_answers_and_is_evaluated(plugin: Installed):
    card = plugin.told("train", "--resume", "--out", "runs/grades", "--budget", "8steps")
    assert (card["step"], card["task"], card["model"]) == (8, "ordinal", "grader")
    assert 0 <= card["scores"]["mae"] <= 4
    assert "valid_mae" in plugin.told("show", "runs/grades")["best"]
    (answer,) = plugin.told("generate", "runs/grades", TYPED)["answers"]
    assert answer["text"] in "12345"
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    held_out, whole = plugin.told("evaluate", "runs/grades"), plugin.told("evaluate", "runs/grades", "meals.tsv")
    assert 0 <= held_out["mae"] <= 4
    assert whole["examples"] == 120


def test_a_file_is_answered_by_its_task_which_says_nothing_of_files(plugin: Installed):
    (plugin.folder / "new.csv").write_text(f"id,text\n7,{TYPED}\n8,cold soup\n", encoding="utf-8")
    told = plugin.told("predict", "runs/grades", "new.csv", "--out", "grades.jsonl", "--force")
    assert (told["inputs"], told["columns"]) == (2, ["answer", "probability"])
    first, second = map(json.loads, (plugin.folder / "grades.jsonl").read_text(encoding="utf-8").splitlines())
    assert (first["id"], first["text"], second["id"]) == ("7", TYPED, "8")
    (answer,) = plugin.told("generate", "runs/grades", TYPED)["answers"]
    assert first["answer"] == answer["text"]
    assert first["probability"] == pytest.approx(answer["probabilities"][answer["text"]], abs=1e-6)


@pytest.mark.parametrize(
    ("run", "typed", "expected"),
    [
        ("runs/text", "the cat sat", GENERAL | {"states", "hidden", "decay"}),
        ("runs/grades", TYPED, {"answer", "drop", "forgetting", "meaning", "shuffle", "states", "hidden", "decay"}),
    ],
)
def test_every_view_that_is_offered_of_a_run_is_made(plugin: Installed, run: str, typed: str, expected: set[str]):
    views = plugin.told("explain", run, "--list")["views"]
    assert expected <= views.keys()
    for view in views:
        asked = ("--compare", typed, typed, "--word", "the") if view == "meaning" else (typed,)
        assert plugin.told("explain", run, *asked, "--view", view)["panels"], view
    assert plugin.told("explain", run, typed)["panels"]


def test_its_look_tells_the_decays_of_the_paper(plugin: Installed):
    told = plugin.told("explain", "runs/text", "the cat sat", "--view", "decay", "--layer", "2", "--position", "2")
    (lives, left, _) = told["panels"]
    assert [row[1] for row in lives["rows"]] == pytest.approx([1 - 2**-5, 1 - 2**-6])
    assert left["weights"][0] == pytest.approx([(1 - 2**-5) ** 2, 1 - 2**-5, 1.0])


def test_the_name_of_an_encoder_is_taken_under_the_head_of_its_task(plugin: Installed):
    card = plugin.told("train", "meals.tsv", "--model", "lstm", *STEPS, "--out", "lstm")
    assert card["model"] == "grader"
    saved = json.loads((plugin.folder / "lstm" / "config.json").read_text(encoding="utf-8"))
    assert saved["model"]["settings"]["encoder"] == "lstm"


def test_its_study_is_run(plugin: Installed):
    (found,) = plugin.told("reproduce", "half_life", "--quick")["studies"]
    assert found["outcome"] == "holds"


def test_the_page_shows_its_runs(plugin: Installed):
    with lab_process(plugin.folder, environment(PYTHONPATH=plugin.path), *RUNS, "--device", "cpu") as (_, told):

        def asked(path: str, **question: Any) -> Any:
            body = json.dumps(question).encode() if question else None
            head = {"Content-Type": "application/json"}
            with urllib.request.urlopen(urllib.request.Request(told["url"] + path, body, head), timeout=30) as answer:
                return json.loads(answer.read())

        runs = {run["name"]: run for run in asked("api/runs")["runs"]}
        assert {(run["model"], run["task"]) for run in runs.values()} == {("retnet", "text"), ("grader", "ordinal")}
        for name, run in runs.items():
            offered = asked("api/run", run=name)
            assert {"decay", "states"} <= offered["views"].keys()
            typed = TYPED if run["task"] == "ordinal" else "the cat sat"
            for view in ("decay", None):
                assert asked("api/view", run=name, view=view, text=typed, options={})["panels"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("score", "runs/grades", TYPED), "is a run of the task ordinal, and this needs one of text or pairs"),
        (("explain", "runs/grades", TYPED, "--target", "x"), "writes nothing from a source"),
        (("generate", "runs/grades", TYPED, "--beam", "2"), "--beam means nothing to a run of the task ordinal"),
        (("train", "my.txt", "--from", "runs/grades"), "of the task ordinal, and the data is of the task text"),
        (("train", "meals.tsv", "--task", "ordinl"), "did you mean 'ordinal'?"),
        (("train", "meals.tsv", "--model", "captioner"), "choose --model grader"),
        (("train", "meals.tsv", "--set", "data.bio=false"), "data.bio means nothing to the task ordinal"),
        (("train", "my.txt", "--model", "retnet", "--set", "model.n_heads=3"), "n_heads 3 does not divide d_model"),
    ],
)
def test_what_it_lacks_is_refused_in_one_line(plugin: Installed, argv: tuple[str, ...], message: str):
    outcome = plugin.call(*argv)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_grade_that_is_none_is_refused_with_its_line(plugin: Installed):
    (plugin.folder / "bad.tsv").write_text(GRADED + "so so\t6\n", encoding="utf-8")
    outcome = plugin.call("train", "bad.tsv", *STEPS)
    assert outcome.code == 3
    assert "bad.tsv, line 122: expected a text and a grade from 1 to 5, found '6'" in outcome.err


def test_where_it_is_not_installed_a_run_of_its_task_says_what_to_do(plugin: Installed):
    for verb in (("generate", "runs/grades", TYPED), ("evaluate", "runs/grades"), ("show", "runs/grades")):
        outcome = call_here(verb[0], str(plugin.folder / verb[1]), *verb[2:])
        assert outcome.code in (2, 4)
        assert "unknown task 'ordinal'" in outcome.err
        assert "--import MODULE" in outcome.err


def test_the_commands_of_the_walk_through_work_in_their_order(plugin: Installed):
    seen, compared = list[list[str]](), dict[str, set[str]]()
    for argv in (argv for page in PAGES for argv in commands_of(page)):
        if argv in seen or argv[0] in ELSEWHERE:
            continue
        seen.append(argv)
        if argv[0] == "compare":
            rows = plugin.told(*shorter(argv), "--seeds", "1")["rows"]
            compared[argv[1]] = {row["label"] for row in rows if not row["failed"]}
        else:
            assert plugin.done(*shorter(argv)), argv
    assert {argv[0] for argv in seen} >= {"train", "generate", "score", "evaluate", "explain", "reproduce"}
    assert compared == {"my.txt": {"ngram", "lstm", "retnet"}, "meals.tsv": {"dan", "lstm", "grader"}}


def shorter(argv: list[str]) -> list[str]:
    """The same on smaller models and for fewer steps."""
    words = list(argv)
    if "--budget" in argv:
        words[argv.index("--budget") + 1] = "6steps" if "--resume" in argv else "4steps"
    if argv[0] in ("train", "compare") and "--resume" not in argv:
        words += [*SHORT, *(["--set", "train.length=16"] if "my.txt" in argv else [])]
    return words


def test_every_module_of_it_stands_in_its_pyproject():
    announced = (PLUGIN / "pyproject.toml").read_text(encoding="utf-8")
    for file in (PLUGIN / "src" / "regard_retention").glob("[a-z]*.py"):
        assert f'"regard_retention.{file.stem}"' in announced
