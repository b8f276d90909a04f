"""The page of a served run: a text is written as it comes, and whatever stands in it is text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from served import Served, serving

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "my.txt").write_text("".join(f"the cat {n} sat on the mat .\n" for n in range(60)), encoding="utf-8")
    how: dict[str, Any] = {"budget": "2steps", "size": "tiny", "device": "cpu"}
    regard.train("lstm", str(folder / "my.txt"), out=str(folder / "runs" / "lstm"), **how)
    with serving(Path(folder), "runs/lstm", "--slots", "2") as found:
        yield found


def test_a_text_is_written_into_the_page_and_is_no_html(open_page: Any, server: Served) -> None:
    page = open_page(server.url)
    page.locator("option", has_text="lstm").wait_for(state="attached")
    page.locator("textarea").fill("the <img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Write").click()
    page.get_by_text("a second").wait_for()
    assert page.locator(".written img").count() == 0
    assert page.locator(".written").inner_text().startswith("the <img src=x")
    assert len(page.locator(".written").inner_text()) > len("the <img src=x onerror=alert(1)>")


def test_the_lab_asks_for_the_key_of_a_server(open_page: Any, server: Served) -> None:
    folder = server.log.parent
    (folder / "keys").write_text("secret\n", encoding="utf-8")
    with serving(folder, "runs/lstm", "--slots", "2", "--api-key", "keys") as guarded:
        page = open_page(guarded.url, expects=("401",))
        page.get_by_role("link", name="lab").click()
        page.get_by_text("The server asks for a key.").wait_for()
        page.get_by_label("Key").fill("wrong")
        page.get_by_label("Key").press("Enter")
        page.get_by_text("none of the keys").wait_for()
        page.get_by_label("Key").fill("secret")
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("link", name="lstm").first.wait_for()
        assert page.locator("dialog.key").count() == 0
        page.close()  # else it asks on when the server has ended


def test_what_may_be_asked_is_listed_without_a_network(open_page: Any, server: Served) -> None:
    page = open_page(f"{server.url}docs")
    page.get_by_text("POST /v1/completions").wait_for()
    assert page.get_by_text("frequency_penalty").count() >= 2
    inside = ("messages.role", "messages.content.text", "response_format.type", "response_format.json_schema.schema")
    for name in (*inside, "stream_options.include_usage"):
        assert page.locator("td", has_text=name).count() >= 1, name


@pytest.mark.parametrize("path", ["", "docs", "lab"])
def test_a_page_fits_a_narrow_window_and_asks_for_nothing_that_is_not_there(
    open_page: Any, server: Served, path: str
) -> None:
    page, missing = open_page(f"{server.url}health"), list[str]()
    page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    page.set_viewport_size({"width": 400, "height": 900})
    page.goto(f"{server.url}{path}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert missing == []
