"""The input that the page begins with: one that the run can read, of what was held out from it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from calling import TEXT, call_here

from look_run import class_run, masked_run, pair_run, tag_run, text_run
from regard.data.worlds import text_world, world_of
from regard.explain import registry
from regard.run.run import load
from regard.serving import beginning
from regard.serving.beginning import EXAMPLE, example_input
from regard.tasks import task_named


def on(run: Any, path: str) -> Any:
    """The run as if it had been trained on that data."""
    run.config["data"]["path"] = path
    return run


def bare(path: Path, task: str, data: str) -> Any:
    """All that is known of a run whose data cannot be made again."""

    def gone(_: str) -> Any:
        raise AssertionError("the data is gone or large, and is not to be read")

    config = {"data": {"task": task, "path": data}, "train": {"seed": 0}}
    return SimpleNamespace(path=path, config=config, task=task_named(task), seed=0, held_out=gone)


@pytest.mark.parametrize(
    ("run", "world"),
    [
        (lambda: text_run("gpt"), "world:stories"),
        (masked_run, "world:stories"),
        (class_run, "world:reviews"),
        (tag_run, "world:tags"),
        (lambda: pair_run("transformer"), "world:translation"),
    ],
)
def test_a_run_on_a_world_begins_with_a_held_out_input_that_it_can_read(run: Any, world: str) -> None:
    made = on(run(), world)
    text = example_input(made)
    assert 0 < len(text) <= EXAMPLE
    assert registry.view(made, None, text).panels


def test_the_input_is_of_the_kind_that_the_task_takes() -> None:
    story = text_world("world:stories", 0).documents("valid", 1)[0]
    assert story.startswith(example_input(on(text_run("gpt"), "world:stories")))
    assert "[MASK]" in example_input(on(masked_run(), "world:stories"))
    sentences = [list(one.words) for one in world_of("world:tags", "tagged", 0).examples("valid", 20)]
    assert example_input(on(tag_run(), "world:tags")).split() in sentences


@pytest.mark.parametrize("task", ["captions", "series"])
def test_a_picture_or_a_series_is_left_to_the_look(tmp_path: Path, task: str) -> None:
    (tmp_path / "samples.txt").write_text("--- step 9\n2021-01-06T00:00:00: 8.6 10.7\n")
    assert example_input(bare(tmp_path, task, "my.csv")) == ""


def test_counts_of_a_file_begin_with_a_line_that_they_were_not_made_of(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(TEXT)
    chosen = ("--model", "ngram", "--set", "data.documents=line", "--out", str(tmp_path / "run"), "--quiet")
    outcome = call_here("train", str(tmp_path / "my.txt"), *chosen)
    assert outcome.code == 0, outcome.err
    run = load(tmp_path / "run", device="cpu")
    text = example_input(run)
    assert run.held_out("valid")[0].startswith(text)
    assert any(line.startswith(text) for line in TEXT.split("\n"))
    assert registry.view(run, None, text).panels


@pytest.mark.parametrize(
    ("task", "samples", "example"),
    [
        ("text", "--- step 1\nold\n--- step 2\n\nthe cat sat\nthe dog\n", "the cat sat"),
        ("pairs", "--- step 9\na letter draws -> una brifa desu =\n", "a letter draws"),
        ("text", "--- step 9\n" + "word " * 40, "word word word word word word word word word word word word"),
        ("text", "", ""),
        ("tagged", "--- step 9\nThe/DET old/NOUN =\n", ""),
        ("masked", "--- step 9\n[Once] there was\n", ""),
    ],
)
def test_where_the_data_is_large_the_last_sample_tells_what_was_given(
    tmp_path: Path, task: str, samples: str, example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginning, "LARGEST", 3)
    (tmp_path / "my.txt").write_text("four")
    (tmp_path / "samples.txt").write_text(samples)
    assert example_input(bare(tmp_path, task, str(tmp_path / "my.txt"))) == example


def test_where_the_data_is_gone_the_last_sample_is_taken_and_without_one_nothing(tmp_path: Path) -> None:
    run = on(text_run("gpt"), str(tmp_path / "gone.txt"))
    run.path = tmp_path
    assert example_input(run) == ""
    (tmp_path / "samples.txt").write_text("--- step 1\nthe dog\n")
    assert example_input(run) == "the dog"
