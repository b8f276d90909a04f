"""`regard explain` as a person types it: examples, views of a run, files, and wrong words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from calling import call_here, call_process

from regard.errors import UsageError
from regard.explain.worked import example, examples

TEXT = "the cat sat on the mat"


@pytest.mark.parametrize("name", examples())
def test_an_example_prints_the_numbers_that_the_library_gives(name: str) -> None:
    outcome = call_here("explain", "steps", name, "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out) == json.loads(json.dumps(example(name).to_dict()))
    shown = call_here("explain", "steps", name)
    assert shown.code == 0
    assert example(name).title in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


def test_examples_are_listed_and_a_wrong_name_gets_the_nearest() -> None:
    listed = call_here("explain", "steps", "--list").out
    assert all(name in listed for name in examples())
    assert json.loads(call_here("explain", "steps", "--list", "--json").out)["examples"] == examples()
    outcome = call_here("explain", "steps", "three-input")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (UsageError.exit_code, "", 1)
    assert "three-inputs" in outcome.err


def test_options_of_views_are_not_for_examples() -> None:
    outcome = call_here("explain", "steps", "ab", "--layer", "3")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (UsageError.exit_code, "", 1)


def test_a_run_shows_what_tells_most_of_it_and_lists_the_rest(trained: Path) -> None:
    shown = call_here("explain", str(trained), TEXT)
    assert shown.code == 0, shown.err
    assert "Attention over the text" in shown.out
    listed = json.loads(call_here("explain", str(trained), "--list", "--json").out)["views"]
    assert {"attention", "heads", "rollout", "steps"} <= listed.keys()
    for view in listed:
        outcome = call_here("explain", str(trained), *_wanted(view), "--view", view, "--json")
        assert outcome.code == 0, (view, outcome.err)
        told = json.loads(outcome.out)
        assert told["panels"], view
        assert told["about"]["run"] == str(trained)


def _wanted(view: str) -> list[str]:
    """What a view is asked of."""
    return ["--compare", "the cat sat", "a cat ran", "--word", "cat"] if view == "meaning" else [TEXT]


def test_one_head_one_position_in_numbers(trained: Path) -> None:
    argv = ["explain", str(trained), TEXT, "--steps", "--layer", "2", "--head", "1", "--position", "5", "--json"]
    outcome = call_here(*argv)
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    weights = next(panel for panel in told["panels"] if panel.get("key") == "weights")
    assert sum(weights["values"][0]) == pytest.approx(1, abs=1e-6)
    assert (told["about"]["layer"], told["about"]["position"]) == (2, 5)


@pytest.mark.parametrize("kind", ["svg", "png", "html"])
def test_a_view_is_saved_as_a_file_instead_of_shown(kind: str, trained: Path, here: Path) -> None:
    outcome = call_here("explain", str(trained), TEXT, f"--{kind}", f"view.{kind}")
    assert (outcome.code, outcome.out) == (0, "")
    assert f"saved view.{kind}" in outcome.err
    assert (here / f"view.{kind}").stat().st_size > 1000
    wrong = call_here("explain", str(trained), TEXT, f"--{kind}", "view.txt")
    assert (wrong.code, wrong.err.count("\n")) == (UsageError.exit_code, 1)
    assert not (here / "view.txt").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([TEXT, "--layer", "9"], "layer 9: the model has layers 1 to 2"),
        ([TEXT, "--head", "9"], "head 9: the layer has heads 1 to 2"),
        ([TEXT, "--position", "99"], "positions 1 to"),
        ([TEXT, "--view", "gates"], "has no gates to show; this run can show attention"),
        ([TEXT, "--view", "atention"], "did you mean 'attention'?"),
        ([TEXT, "--steps", "--view", "heads"], "--steps is a view of its own"),
        ([TEXT, "--target", "x"], "leave the target out"),
        ([TEXT, "--view", "meaning"], "--compare"),
        ([TEXT, "--view", "heads", "--layer", "2"], "the view heads makes no use of layer: leave it out"),
        ([TEXT, "--words", "--position", "2"], "makes no use of position"),
        ([TEXT, "--set-sense", "cat:1=0"], "has no senses to show"),
        ([TEXT, "--compare", "the cat", "a cat", "--word", "cat"], "leave the other one out"),
        (["--compare", "the cat", "a cat"], "--word"),
        (["--compare", "the cat", "a dog", "--word", "cat"], "'cat' is not in the second text"),
        ([], "nothing to explain"),
    ],
)
def test_wrong_words_get_one_line(argv: list[str], message: str, trained: Path) -> None:
    outcome = call_here("explain", str(trained), *argv)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (UsageError.exit_code, "", 1)
    assert message in outcome.err


def test_text_that_commands_a_terminal_is_shown_as_text(trained: Path) -> None:
    outcome = call_here("explain", str(trained), "the \x1b[2Jcat \x07sat")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert "\x07" not in outcome.out


@pytest.mark.slow
def test_where_the_locale_is_no_utf_8_shades_are_ascii(trained: Path) -> None:
    outcome = call_process("explain", str(trained), TEXT, LC_ALL="C")
    assert outcome.code == 0, outcome.err
    assert outcome.out.isascii()


def test_a_view_is_saved_on_slides_and_in_motion(here: Path) -> None:
    outcome = call_here("explain", "steps", "training", "--png", "a.png", "--size", "480x270")
    assert outcome.code == 0, outcome.err
    assert re.fullmatch(r"saved a-1\.png to a-\d\.png\n", outcome.err)
    outcome = call_here("explain", "steps", "training", "--panel", "1", "--svg", "one.svg", "--size", "slide")
    assert (outcome.code, outcome.err) == (0, "saved one.svg\n")
    outcome = call_here("explain", "steps", "training", "--animate", "b.svg", "--seconds", "3", "--once")
    assert (outcome.code, outcome.err) == (0, "saved b.svg\n")
    text = (here / "b.svg").read_text(encoding="utf-8")
    assert "* 3s" in text
    assert "infinite" not in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--png", "a.png", "--size", "slid"], "did you mean 'slide'?"),
        (["--png", "a.png", "--size", "1x1"], "the sides of a picture are 240 to 8192 pixels"),
        (["--size", "slide"], "is of a picture: name its file"),
        (["--html", "a.html", "--size", "slide"], "is of a picture: name its file"),
        (["--seconds", "3"], "of an animation: name its file with --animate"),
        (["--animate", "a.gif"], "an animation is one of .png, .apng, .svg"),
        (["--animate", "nowhere/a.svg"], "there is no folder nowhere"),
        (["--animate", "a.svg", "--seconds", "0"], "a step of 0 s"),
        (["--panel", "99"], "there is no panel '99'"),
    ],
)
def test_a_picture_that_cannot_be_made_gets_one_line(argv: list[str], message: str, here: Path) -> None:
    outcome = call_here("explain", "steps", "training", *argv)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (UsageError.exit_code, "", 1)
    assert message in outcome.err
    assert not list(here.iterdir())
