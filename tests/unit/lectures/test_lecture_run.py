"""Lectures as they are sat: two of them every time, all of them by --full; by the package, and by Jupyter's kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.lectures.catalogue import lecture, names
from regard.lectures.sitting import sit

EVERY_TIME = ("counting", "self-attention")
BY_KERNEL = ("counting",)
LONGEST = 300.0  # seconds on a loaded machine; alone they take 4 to 40


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    few = {"sat": EVERY_TIME, "by_kernel": BY_KERNEL}
    for name, chosen in few.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, names() if metafunc.config.getoption("--full") else chosen)


@pytest.mark.slow
def test_every_cell_runs_and_every_solution_is_right(sat: str) -> None:
    found = lecture(sat)
    told: list[int] = []
    sitting = sit(found, lambda number, _: told.append(number))
    assert told == list(range(1, len(found.screens) + 1))
    assert json.loads(json.dumps(sitting, allow_nan=False)) == sitting
    assert [screen["title"] for screen in sitting["screens"]] == [screen.title for screen in found.screens]
    assert sitting["seconds"] < LONGEST
    right = 0
    for screen in sitting["screens"]:
        kinds = {output["kind"] for cell in screen["cells"] for output in cell.get("outputs", ())}
        assert "error" not in kinds or any(cell.may_fail for one in found.screens for cell in one.cells)
        assert screen["kind"] != "picture" or kinds & {"view", "svg"}, screen["title"]
        for cell in screen["cells"]:
            texts = "".join(output.get("text", "") for output in cell.get("outputs", ()))
            if cell.get("is_solution"):
                right += texts.count(": right\n")
                assert "not yet" not in texts, texts
            else:
                assert f"{sat}/" not in texts or texts.count("not answered yet") == texts.count(f"{sat}/"), texts
    assert right == len(found.exercises)


@pytest.mark.slow
def test_a_kernel_of_jupyter_comes_to_the_same(by_kernel: str, tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    found = lecture(by_kernel)
    notebook = nbformat.read(found.path, as_version=4)
    nbformat.validate(notebook)
    client = nbclient.NotebookClient(
        notebook, timeout=LONGEST, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()) if "text" in output
    )
    assert printed.count(": right\n") == len(found.exercises)
    assert list(tmp_path.iterdir()) == [], "a lecture leaves nothing where it is sat"
