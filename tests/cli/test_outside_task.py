"""A task from outside the package goes through every verb, with no file of regard changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import Outcome, call_here

import regard
from regard import tasks
from regard.core import registry
from regard.errors import UsageError
from regard.serving.provider import RunProvider
from regard.serving.shelf import found_runs

WORDS = ("awful", "poor", "fair", "good", "great")
RATED = "".join(
    f"{number % 5 + 1}\tthe {thing} was {WORDS[number % 5]} on day {number}\n"
    for number, thing in enumerate(["soup", "room", "show", "film"] * 20)
)
STEPS = ("--size", "tiny", "--device", "cpu", "--budget", "6steps")


def forget() -> None:
    """As if nobody had imported the task."""
    tasks._registered.pop("rating", None)
    registry._entries.pop("rater", None)
    sys.modules.pop("rating_task", None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with data and a run of the task."""
    here = tmp_path_factory.mktemp("outside")
    (here / "my.rated").write_text(RATED)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        done = outside("train", "my.rated", *STEPS, "--out", "runs/stars", "--json")
        (here / "card.json").write_text(done.out)
        yield here
    forget()


def outside(*argv: str) -> Outcome:
    done = call_here("--import", "rating_task", *argv)
    assert done.code == 0, done.err
    return done


def test_training_tells_its_own_score_and_keeps_its_own_files(folder: Path):
    card = json.loads((folder / "card.json").read_text())
    assert card["task"] == "rating"
    assert 0 < card["scores"]["mae"] < 5
    assert card["next"][0].startswith("regard generate runs/stars ")
    assert {"tokenizer.json", "codec.json", "model.safetensors"} <= {
        one.name for one in (folder / "runs/stars").iterdir()
    }
    best = json.loads(outside("show", "runs/stars", "--json").out)["best"]
    assert "valid_mae" in best


def test_a_run_goes_on(folder: Path):
    card = json.loads(outside("train", "--resume", "--out", "runs/stars", "--budget", "8steps", "--json").out)
    assert card["step"] == 8


def test_a_run_answers_is_evaluated_and_explained(folder: Path):
    answer = outside("generate", "runs/stars", "the soup was great").out.strip()
    assert answer in set("12345")
    assert "mae" in json.loads(outside("evaluate", "runs/stars", "--json").out)
    assert "mae" in json.loads(outside("evaluate", "runs/stars", "my.rated", "--json").out)
    views = json.loads(outside("explain", "runs/stars", "--list", "--json").out)["views"]
    assert {"attention", "heads", "rollout", "forgetting", "answer", "drop", "shuffle", "steps"} <= views.keys()
    for view in views:
        asked = ("--compare", "the soup was great", "the room was great", "--word", "great")
        given = asked if view == "meaning" else ("the soup was great",)
        assert json.loads(outside("explain", "runs/stars", *given, "--view", view, "--json").out)["panels"]


def test_models_of_the_task_are_compared(folder: Path):
    found = outside(
        "compare", "my.rated", "--size", "tiny", "--budget", "6steps", "--seeds", "1", "--out", "race", "--json"
    )
    told = json.loads(found.out)
    assert {row["label"] for row in told["rows"]} == {"rater?encoder=dan", "rater"}
    assert not any(row["failed"] for row in told["rows"])
    assert told["protocol"]["task"] == "rating"


def test_the_name_of_an_encoder_is_taken_under_the_head_of_the_task(folder: Path):
    card = json.loads(outside("train", "my.rated", "--model", "lstm", *STEPS, "--out", "runs/lstm", "--json").out)
    assert card["model"] == "rater"
    assert json.loads((folder / "runs/lstm/config.json").read_text())["model"]["settings"]["encoder"] == "lstm"


def test_the_lab_shows_it(folder: Path):
    provider = RunProvider(lambda: found_runs(["runs/stars"], strict=False), "cpu")
    assert [run["task"] for run in provider.runs()] == ["rating"]
    offer = provider.offer("runs/stars")
    assert offer["example"].startswith("the ")
    assert provider.tokens("runs/stars", "the soup was great") == 5
    assert provider.view("runs/stars", None, offer["example"], {}).panels


def test_it_is_listed(folder: Path):
    told = json.loads(outside("list", "--json").out)
    assert {"name": "rating", "shape": "N-1", "metric": "mae", "model": "rater"}.items() <= told["tasks"][-1].items()
    assert told["models"][-1]["shape"] == "N-1"
    assert "rating" in outside("list").out
    assert "task rating, shape N-1" in outside("show", "rater").out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("score", "runs/stars", "the soup"), "runs/stars is a run of the task rating, and this needs one of text"),
        (("explain", "runs/stars", "the soup", "--target", "x"), "writes nothing from a source"),
        (("generate", "runs/stars", "the soup", "--beam", "2"), "--beam means nothing to a run of the task rating"),
        (("train", "my.rated", "--from", "runs/stars"), "a run of the task rating has no encoder to load"),
        (("train", "my.rated", "--task", "ratin"), "did you mean 'rating'?"),
        (("train", "my.rated", "--model", "captioner"), "choose --model rater"),
        (("train", "my.rated", "--set", "data.label=2"), "data.label means nothing to the task rating"),
    ],
)
def test_what_the_task_lacks_is_refused_in_one_line(folder: Path, argv: tuple[str, ...], message: str):
    outcome = call_here("--import", "rating_task", *argv)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_run_of_a_task_that_nobody_imported_says_what_to_do(folder: Path):
    forget()
    for verb in (("generate", "runs/stars", "the soup"), ("evaluate", "runs/stars"), ("show", "runs/stars")):
        outcome = call_here(*verb)
        assert outcome.code in (2, 4)
        assert "unknown task 'rating'" in outcome.err
        assert "--import MODULE" in outcome.err


def test_entry_points_bring_tasks_and_a_taken_name_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    forget()

    class Point:
        @staticmethod
        def load() -> None:
            import rating_task  # noqa: F401  # importing registers it

    monkeypatch.setattr(tasks, "entry_points", lambda group: [Point] if group == "regard.tasks" else [])
    monkeypatch.setattr(tasks, "_plugins_loaded", False)
    assert tasks.names()[-1] == "rating"
    assert regard.load("runs/stars", device="cpu").generate("the soup was great") in set("12345")
    with pytest.raises(UsageError, match="the task name 'rating' is taken by rating_task"):
        tasks.register_task(type("Other", (tasks._registered["rating"],), {"__module__": "elsewhere"}))
