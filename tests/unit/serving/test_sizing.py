"""How a run is stepped in a server: its slots, its number type, how prompts are read."""

from __future__ import annotations

import pytest
import torch

from look_run import text_run
from regard.decoding.completion import Completion
from regard.run.run import Run
from regard.serving.engine.room import Room
from regard.serving.engine.sizing import SHARE, Sizes, bytes_of_model, bytes_of_row, engine_of


def saved_run(name: str) -> Run:
    run = text_run(name)
    run.model.float()
    return run


@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba2"])
def test_texts_are_written_in_the_type_that_is_asked_for_and_all_else_as_it_was_saved(name: str) -> None:
    run = saved_run(name)
    room = Room("a", run, Sizes(memory=1 << 30, slots=1, precision="bfloat16"))
    assert room.completion is not None
    assert {one.dtype for one in room.completion.model.parameters()} == {torch.bfloat16}
    assert {one.dtype for one in run.model.parameters()} == {torch.float32}
    assert room.nbytes > Room("b", run, Sizes(memory=1 << 30, slots=1)).nbytes


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


def room_of(sizes: Sizes) -> tuple[Room, Completion]:
    room = Room("a", saved_run("gpt"), sizes)
    assert room.completion is not None
    return room, room.completion


@pytest.mark.parametrize(("slots", "rows"), [(1, 1), (2, 4), (4, 4), (5, 8)])
def test_rows_that_fill_up_fours_are_counted(slots: int, rows: int) -> None:
    room, completion = room_of(Sizes(slots=slots))
    assert engine_of(completion.model, slots).n_rows == rows
    assert room.nbytes == bytes_of_model(room.run.model) + rows * bytes_of_row(completion)


@pytest.mark.parametrize(("fitting", "slots"), [(1, 1), (3, 1), (4, 4), (6, 4), (7, 4), (8, 8)])
def test_there_are_as_many_slots_as_rows_fit_into_the_memory(fitting: int, slots: int) -> None:
    row = bytes_of_row(room_of(Sizes(slots=1))[1])
    assert room_of(Sizes(memory=SHARE * fitting * row))[0].slots == slots


def test_prompts_are_read_one_by_one_on_a_cpu() -> None:
    engine = engine_of(text_run("gpt").model, 8)
    assert (engine.arrivals.together, engine.arrivals.steady) == (1, 0)


@pytest.mark.gpu
def test_prompts_that_came_together_are_read_together_on_a_gpu() -> None:
    engine = engine_of(text_run("gpt").model.to("cuda"), 8)
    assert (engine.arrivals.together, engine.arrivals.steady) == (8, 8)
