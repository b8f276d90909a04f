"""The site in a real browser: nothing from elsewhere, light pages, no page wider than its window, a search, axe."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browsing import page_width, wait_until

FEW = ("index.html", "choose.html", "inside.html", "api/mixers.html", "results/compare.html", "steps/lstm.html")
AXE = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"
LARGEST = 200_000
SERIOUS = {"serious", "critical"}
PICTURES = (".svg", ".png", ".webp")
pytestmark = pytest.mark.slow  # whichever of them is the first one waits for the site


@pytest.fixture(params=FEW)
def page_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def names(request: pytest.FixtureRequest, site: Path) -> list[str]:
    """All pages with --full, else a few of every kind."""
    found = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    return found if request.config.getoption("--full") else list(FEW)


def seen(open_page: Any, address: str, names: list[str], width: int, dark: bool = False) -> Any:
    """One page after the other, in one window."""
    page = open_page(address + names[0], width=width, dark=dark)
    for name in names:
        page.goto(address + name)
        yield name, page


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 800, 1280])
def test_no_page_is_wider_than_its_window(open_page: Any, address: str, names: list[str], width: int):
    for name, page in seen(open_page, address, names, width):
        wide = page_width(page) - page.evaluate("document.documentElement.clientWidth")
        assert wide <= 0, (name, width, wide)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_axe_has_nothing_serious_to_say(open_page: Any, address: str, names: list[str], dark: bool):
    if not AXE.exists():
        pytest.skip("no axe-core: npm install --no-save --prefix tests/site/axe axe-core")
    wrong = []
    for name, page in seen(open_page, address, names, 1280 if dark else 400, dark):
        page.add_script_tag(path=str(AXE))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        for one in found:
            if one["impact"] in SERIOUS:
                wrong.append((name, one["id"], one["nodes"][0]["html"][:150], len(one["nodes"])))
    assert wrong == []


@pytest.mark.slow
def test_a_page_weighs_less_than_200_kb_with_all_that_it_loads(
    open_page: Any, address: str, names: list[str], site: Path
):
    asked: set[str] = set()
    page = open_page(address)
    page.on("request", lambda request: asked.add(urlsplit(request.url).path.lstrip("/")))
    for name in names:
        asked.clear()
        page.goto(address + name)
        page.wait_for_load_state("networkidle")
        loaded = [site / path for path in asked if (site / path).is_file()]
        assert not [path for path in loaded if path.name == "search_index.json"], name
        sizes = {path: len(gzip.compress(path.read_bytes())) for path in {site / name, *loaded}}
        text = sum(size for path, size in sizes.items() if path.suffix not in PICTURES)
        assert text < LARGEST, (name, text)


def test_the_search_finds_a_page_and_works_without_a_network(open_page: Any, address: str):
    page = open_page(address)
    page.locator(".md-code__button").first.wait_for()  # by then the theme's script has begun
    page.keyboard.press("/")
    page.keyboard.type("crfsuite")
    result = page.locator(".md-search-result__link", has_text="crfsuite").first
    result.wait_for()
    result.click()
    page.wait_for_url("**/*h=crfsuite*")
    assert "crfsuite" in page.inner_text("article").lower()


def test_the_keyboard_reaches_the_text_first_and_sees_where_it_is(open_page: Any, address: str):
    page = open_page(address + "choose.html")
    page.keyboard.press("Tab")
    assert "md-skip" in page.evaluate("document.activeElement.className")
    page.keyboard.press("Enter")
    page.wait_for_url("**#choose-a-model")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_code_is_copied_and_dark_stays_dark(open_page: Any, address: str):
    page = open_page(address + "choose.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".md-code__button").first.click()
    wait_until(page, "navigator.clipboard.readText().then((told) => told.startsWith('regard inspect my.csv'))")
    page.get_by_title("Dark").click()
    page.goto(address + "inside.html")
    assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"


def test_paper_has_the_text_alone(open_page: Any, address: str):
    page = open_page(address + "choose.html")
    page.emulate_media(media="print")
    assert not page.locator(".md-header").is_visible()
    assert not page.locator(".md-sidebar").first.is_visible()
    assert page.locator("table").first.is_visible()
