"""How a run is stepped in a server: its slots, its number type, how prompts are read."""

from __future__ import annotations

import pytest
import torch

from look_run import text_run
from regard.run.run import Run
from regard.serving.engine.room import Room
from regard.serving.engine.sizing import Sizes, engine_of


def saved_run(name: str) -> Run:
    run = text_run(name)
    run.model.float()
    return run


@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba2"])
def test_texts_are_written_in_the_type_that_is_asked_for_and_all_else_as_it_was_saved(name: str) -> None:
    run = saved_run(name)
    room = Room("a", run, Sizes(memory=1 << 30, slots=2, precision="bfloat16"))
    assert room.completion is not None
    assert {one.dtype for one in room.completion.model.parameters()} == {torch.bfloat16}
    assert {one.dtype for one in run.model.parameters()} == {torch.float32}
    assert room.nbytes > Room("b", run, Sizes(memory=1 << 30, slots=2)).nbytes


@pytest.mark.parametrize("precision", [None, "float32"])
def test_a_run_that_is_of_the_type_is_not_copied(precision: str | None) -> None:
    run = saved_run("gpt")
    assert Sizes(precision=precision).in_precision(run) is run


def test_weights_of_few_bits_stay_as_they_are() -> None:
    run = saved_run("gpt").with_weights("int8")
    writing = Sizes(precision="bfloat16").in_precision(run)
    assert writing is run
    assert writing.generate("the cat", max_tokens=3)


def test_counts_have_no_number_type() -> None:
    run: Run = text_run("ngram")
    assert Sizes(precision="bfloat16").in_precision(run) is run


def test_prompts_are_read_one_by_one_on_a_cpu() -> None:
    engine = engine_of(text_run("gpt").model, 8)
    assert (engine.arrivals.together, engine.arrivals.steady) == (1, 0)


@pytest.mark.gpu
def test_prompts_that_came_together_are_read_together_on_a_gpu() -> None:
    engine = engine_of(text_run("gpt").model.to("cuda"), 8)
    assert (engine.arrivals.together, engine.arrivals.steady) == (8, 8)
