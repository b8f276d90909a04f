"""The page with what it is for: a run that was just trained, and every worked example."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from calling import TEXT, TINY, call_here

from open_lab import answering
from regard.explain.view import Heat, Numbers, View
from regard.run.run import load
from regard.serving.lab import Lab
from regard.serving.provider import RunProvider

offer = pytest.importorskip("regard.explain.registry")
steps = pytest.importorskip("regard.explain.worked")
SENTENCE = "the cat sat on the mat"
# What a view cannot do without.
NEEDED = {"meaning": {"other": "the dog sat on the log", "word": "sat"}}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny gpt trained for thirty steps on a few sentences."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "my.txt").write_text(TEXT, encoding="utf-8")
    data, words = str(folder / "my.txt"), ("--set", "data.tokens=words")
    outcome = call_here("train", data, "--budget", "30steps", "--out", str(folder / "gpt"), "--quiet", *TINY, *words)
    assert outcome.code == 0, outcome.err
    return folder / "gpt"


@pytest.fixture(scope="module")
def real_lab(run_folder: Path) -> Iterator[Lab]:
    with answering(RunProvider(lambda: {"gpt": run_folder}, "cpu")) as server:
        yield server


def asked_for(run: Any, name: str) -> tuple[View, str]:
    """A view of the sentence, and where the page shows it."""
    options = NEEDED.get(name, {})
    place = {"run": "gpt", "view": name, "text": SENTENCE, "options": json.dumps(options)}
    return offer.view(run, name, SENTENCE, **options), f"#{urlencode(place)}"


def check_numbers(page: Any, view: View) -> None:
    """Every number of every matrix is on the page, in its cell."""
    panels = page.locator(".panel")
    assert panels.count() == len(view.panels)
    for place, panel in enumerate(view.panels):
        if not isinstance(panel, Numbers):
            continue
        for choice in panels.nth(place).locator(".switch button:last-child").all():
            choice.click()
        cells = panels.nth(place).locator("td.number")
        titles = cells.evaluate_all("cells => cells.map(cell => [cell.title, cell.textContent])")
        shown = [float("nan") if title == "masked" else float(title) for title, _ in titles]
        np.testing.assert_array_equal(np.array(shown, dtype=float), np.asarray(panel.values, dtype=float).ravel())
        for (_, text), value in zip(titles, shown, strict=True):
            assert text == "·" if np.isnan(value) else abs(float(text) - value) <= 5.1e-4 * abs(value)


def test_every_view_of_a_trained_run_is_drawn(open_page: Any, real_lab: Lab, run_folder: Path) -> None:
    run = load(run_folder, device="cpu")
    names = offer.views(run)
    assert names
    for name in names:
        view, place = asked_for(run, name)
        page = open_page(f"{real_lab.url}{place}")
        page.locator(".view h2").wait_for()
        assert page.locator(".view h2").text_content() == view.title
        assert page.locator(".panel").count() == len(view.panels)
        check_numbers(page, view)


def test_a_row_of_a_real_map_is_that_of_the_view(open_page: Any, real_lab: Lab, run_folder: Path) -> None:
    run = load(run_folder, device="cpu")
    maps = 0
    for name in offer.views(run):
        view, address = asked_for(run, name)
        page = open_page(f"{real_lab.url}{address}")
        page.locator(".view h2").wait_for()
        for place, panel in enumerate(view.panels):
            if not isinstance(panel, Heat) or view.name == "steps":
                continue
            section = page.locator(".panel").nth(place)
            section.locator(".plane").focus()
            page.keyboard.press("End")
            shown = [float(text) for text in section.locator(".row .number").all_inner_texts()]
            # Of many the largest are listed, and the one that is pointed at may stand for the last of them.
            row = sorted(panel.weights[-1], key=abs)
            first = 0 if len(shown) == len(row) else 1
            np.testing.assert_allclose(
                sorted(shown, key=abs)[first:], row[len(row) - len(shown) + first :], rtol=5e-4, atol=1e-9
            )
            maps += 1
    assert maps


def test_every_worked_example_shows_all_its_numbers(open_page: Any, real_lab: Lab) -> None:
    page = open_page(real_lab.url)
    for name in steps.examples():
        view = steps.example(name)
        page.goto(f"{real_lab.url}#{urlencode({'example': name})}")
        page.locator(".view h2", has_text=view.title).wait_for()
        page.get_by_role("button", name="All", exact=True).click()
        check_numbers(page, view)
