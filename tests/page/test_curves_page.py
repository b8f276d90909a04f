"""The curves of trainings on the page of `regard lab`, while they run and after, in a real browser."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from picture_book import Book
from playwright.sync_api import expect

from browsing import page_width, wait_until
from open_lab import answering
from regard.serving.curves import progress
from regard.serving.lab import Lab
from regard.training.follow import Place

MOST = 200
COUNT = "one.querySelector('polyline').getAttribute('points').split(' ').length"


class Trainings(Book):
    """Runs of two tasks with metrics on disk, of which the numbers are written by the test."""

    def __init__(self, folder: Path, count: int = 6) -> None:
        super().__init__()
        self.paths = {f"runs/r{number}": folder / f"r{number}" for number in range(count)}
        self.training: set[str] = set()
        self.held = threading.Event()
        for name, path in self.paths.items():
            path.mkdir()
            self.write(name, range(1, 4))

    def facts(self, number: int) -> dict[str, Any]:
        task = "text" if number % 3 else "pairs"
        model = "gpt" if number % 2 else "lstm"
        settings = {"model.d_model": 64 * (1 + number), "train.lr": 0.001 * number, "train.budget": "20steps"}
        name = f"runs/r{number}"
        told = {"name": name, "label": name[5:], "path": name, "model": model, "task": task, "settings": settings}
        return told | {
            "data": [task, f"{task}.txt"],
            "budget": {"kind": "steps", "amount": 20.0},
            "began": float(number),
            "has_curves": True,
        }

    def runs(self) -> list[dict[str, Any]]:
        return [self.facts(int(name[6:])) for name in self.paths]

    def write(self, name: str, steps: range, score: str = "valid_loss") -> None:
        with (self.paths[name] / "metrics.jsonl").open("a") as file:
            for step in steps:
                told = {"step": step, "seconds": step / 2, "tokens": 100 * step, "loss": 5 / step}
                file.write(json.dumps(told | {"tokens_per_second": 200.0, "rate": 0.1}) + "\n")
                file.write(json.dumps({"step": step, "seconds": step / 2, score: 6 / step}) + "\n")

    def progress(self, asked: Mapping[str, Place]) -> dict[str, Any]:
        found = progress(self.paths, asked)
        return {name: told | {"is_training": name in self.training} for name, told in found.items()}


@pytest.fixture
def trainings(tmp_path: Path) -> Trainings:
    return Trainings(tmp_path)


@pytest.fixture
def board(trainings: Trainings) -> Iterator[Lab]:
    with answering(trainings) as server:
        yield server


def open_board(open_page: Any, board: Lab, place: str = "", **given: Any) -> Any:
    page = open_page(f"{board.url}{place}", **given)
    if not place:
        page.get_by_role("link", name="Learning curves").click()
    page.get_by_role("heading", name="Curves of trainings").wait_for()
    return page


def charts(page: Any) -> Any:
    return page.locator(".board .chart")


def points(page: Any, number: int) -> list[int]:
    """How many points each line of a chart has."""
    lines = charts(page).nth(number).locator(".line polyline:not(.raw)")
    return lines.evaluate_all("all => all.map(one => one.getAttribute('points').split(' ').length)")


def test_the_newest_runs_that_can_be_compared_are_ticked_and_no_others(open_page: Any, board: Lab) -> None:
    page = open_board(open_page, board)
    expect(charts(page)).to_have_count(2)  # held-out and training loss
    labels = page.locator(".boxes li label > span")
    assert [text.split("\n")[0] for text in labels.all_inner_texts()] == ["r5", "r4", "r3", "r2", "r1", "r0"]
    ticked = page.locator(".boxes input:checked").evaluate_all("all => all.map(one => one.value)")
    assert ticked == ["runs/r5", "runs/r4", "runs/r2", "runs/r1"]  # of the same task and data as the newest
    expect(charts(page).first.locator(".line")).to_have_count(4)
    assert points(page, 0) == [3, 3, 3, 3]


def test_tasks_are_not_on_the_same_axes_and_every_measure_has_a_chart(
    open_page: Any, board: Lab, trainings: Trainings
) -> None:
    trainings.write("runs/r3", range(4, 6), "valid_bleu")
    page = open_board(open_page, board, "#curves=runs/r5&curves=runs/r3")
    expect(page.locator(".task > h3")).to_have_text(["text: 1 run", "pairs: 1 run"])
    expect(page.locator(".task").nth(0).locator("h4")).to_have_text(["held-out loss", "training loss"])
    expect(page.locator(".task").nth(1).locator("h4")).to_have_text(["held-out loss", "training loss", "held-out bleu"])
    page.get_by_label("rate, gradient and speed too").check()
    expect(page.locator(".task").nth(0).locator("h4")).to_have_text(
        ["held-out loss", "training loss", "learning rate", "tokens a second"]
    )


def test_numbers_come_while_a_run_trains_with_its_speed_and_what_is_left(
    open_page: Any, board: Lab, trainings: Trainings
) -> None:
    trainings.training = {"runs/r1"}
    page = open_board(open_page, board, "#curves=runs/r1")
    state = page.locator(".boxes li[data-name='runs/r1'] .state")
    expect(state).to_have_text("training, 200 tokens/s, 9 s left")  # 17 steps of half a second, rounded up
    chart = charts(page).first.element_handle()
    charts(page).first.focus()
    page.keyboard.press("Home")
    trainings.write("runs/r1", range(4, 11))
    with (trainings.paths["runs/r1"] / "metrics.jsonl").open("a") as file:
        file.write('{"step": 11, "val')  # torn, and still being written
    wait_until(
        page,
        "one => one.querySelector('polyline')?.getAttribute('points').split(' ').length === 10",
        arg=chart,
    )
    assert page.evaluate("one => document.activeElement === one", chart)  # no reload: what is pointed at stays
    expect(charts(page).first.locator(".cross text")).to_have_text("1")
    expect(state).to_have_text("training, 200 tokens/s, 5 s left")
    trainings.training = set()
    expect(state).to_have_text("")
    expect(page.locator(".board td").nth(1)).to_have_text("ended")


def test_a_run_that_vanishes_or_begins_again_is_no_error(open_page: Any, board: Lab, trainings: Trainings) -> None:
    trainings.training = set(trainings.paths)
    page = open_board(open_page, board, "#curves=runs/r1&curves=runs/r2")
    expect(charts(page).first.locator(".line")).to_have_count(2)
    shutil.rmtree(trainings.paths["runs/r1"])
    (trainings.paths["runs/r2"] / "metrics.jsonl").unlink()
    trainings.write("runs/r2", range(1, 8))
    page.get_by_text("Not there any more: r1.").wait_for()
    wait_until(page, f"() => {{ const one = document.querySelector('.board'); return {COUNT} === 7; }}")
    expect(charts(page).first.locator(".line")).to_have_count(1)


def test_smoothing_leaves_the_raw_line_faint_behind_and_evaluations_as_they_are(
    open_page: Any, board: Lab, trainings: Trainings
) -> None:
    with (trainings.paths["runs/r1"] / "metrics.jsonl").open("w") as file:
        for step in range(1, 61):
            file.write(json.dumps({"step": step, "loss": float(step % 2)}) + "\n")
        file.write(json.dumps({"step": 60, "valid_loss": 1.0}) + "\n")
    page = open_board(open_page, board, "#curves=runs/r1&options=%7B%22smooth%22%3A0.5%7D")
    expect(charts(page).nth(1).locator(".raw")).to_have_count(1)
    expect(charts(page).nth(0).locator(".raw")).to_have_count(0)
    charts(page).nth(1).focus()
    mean = weight = 0.0
    for step in range(1, 4):
        page.keyboard.press("ArrowRight" if step > 1 else "Home")
        mean, weight = 0.5 * mean + 0.5 * (step % 2), 0.5 * weight + 0.5
        told = float(page.locator(".board .series").nth(1).locator(".number").inner_text())
        assert told == pytest.approx(mean / weight, rel=1e-3)
    page.get_by_label("smoothing").fill("0")
    expect(charts(page).nth(1).locator(".raw")).to_have_count(0)


def test_axes_are_chosen_and_may_go_by_powers_of_ten(open_page: Any, board: Lab) -> None:
    page = open_board(open_page, board, "#curves=runs/r1")
    page.get_by_label("by", exact=True).select_option("2")
    charts(page).first.locator("text", has_text="seconds of training").wait_for()
    charts(page).first.focus()
    page.keyboard.press("End")
    expect(charts(page).first.locator(".cross text")).to_have_text("1.5")  # three steps of half a second
    page.get_by_label("x in powers of ten").check()
    page.get_by_label("y in powers of ten").check()
    wait_until(page, "() => location.hash.includes('log_x') && location.hash.includes('log_y')")
    charts(page).first.focus()
    page.keyboard.press("Home")
    first = charts(page).first.locator(".cross circle").get_attribute("cx")
    page.keyboard.press("ArrowRight")
    second = charts(page).first.locator(".cross circle").get_attribute("cx")
    page.keyboard.press("ArrowRight")
    third = charts(page).first.locator(".cross circle").get_attribute("cx")
    share = (float(second) - float(first)) / (float(third) - float(first))
    assert share == pytest.approx(0.6309, abs=2e-3)  # log 2 / log 3


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("lr>0.003", ["r5", "r4"]),
        ("d_model=128", ["r1"]),
        ("train.lr<=0.001 lstm", ["r0"]),
        ("model!=gpt task=text", ["r4", "r2"]),
        ("R5", ["r5"]),
        ("budget=20steps pairs", ["r3", "r0"]),
    ],
)
def test_runs_are_filtered_by_what_is_typed(open_page: Any, board: Lab, typed: str, found: list[str]) -> None:
    page = open_board(open_page, board)
    page.get_by_label("Filter").fill(typed)
    labels = page.locator(".boxes li label > span")
    expect(labels).to_have_count(len(found))
    assert [text.split("\n")[0] for text in labels.all_inner_texts()] == found
    page.locator(".run-list .unit", has_text=f"{len(found)} of 6 runs").wait_for()


def test_a_setting_that_no_run_has_is_named_and_tasks_and_models_are_chosen(open_page: Any, board: Lab) -> None:
    page = open_board(open_page, board)
    page.get_by_label("Filter").fill("lrr>1")
    page.locator(".run-list .over", has_text="no run here has a setting lrr").wait_for()
    page.get_by_label("Filter").fill("")
    page.get_by_label("Task").select_option("pairs")
    expect(page.locator(".boxes li")).to_have_count(2)
    page.get_by_label("Model").select_option("gpt")
    expect(page.locator(".boxes li")).to_have_count(1)


def test_a_run_keeps_its_colour_whatever_is_shown_beside_it(open_page: Any, board: Lab) -> None:
    page = open_board(open_page, board)
    expect(charts(page)).to_have_count(2)

    def colours() -> dict[str, str]:
        told = "[one.querySelector('.token').textContent, one.querySelector('path').getAttribute('stroke')]"
        keys = page.locator(".board .series").first.locator("button")
        return dict(keys.evaluate_all(f"all => all.map(one => {told})"))

    before = colours()
    assert len(set(before.values())) == 4
    page.locator(".boxes input:checked").first.uncheck()
    expect(charts(page).first.locator(".line")).to_have_count(3)
    after = colours()
    assert after == {name: colour for name, colour in before.items() if name in after}
    page.get_by_role("button", name="Untick all").click()
    page.get_by_text("No run is chosen.").wait_for()
    expect(charts(page)).to_have_count(0)


def test_two_hundred_runs_are_listed_and_sixty_drawn(open_page: Any, tmp_path: Path) -> None:
    with answering(Trainings(tmp_path, MOST)) as server:
        chosen = "&".join(f"curves=runs/r{number}" for number in range(1, MOST, 3))
        page = open_board(open_page, server, f"#{chosen}")
        page.get_by_text("The first 60 runs are drawn, and 7 are not.").wait_for()
        expect(charts(page).first.locator(".line")).to_have_count(60)
        expect(page.locator(".boxes li")).to_have_count(MOST)


@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_sticks_out(open_page: Any, board: Lab, width: int) -> None:
    page = open_board(open_page, board, "#curves=runs/r1&curves=runs/r3", width=width, dark=width == 400)
    expect(charts(page)).to_have_count(4)
    assert page_width(page) <= width
