"""What the built site is made of: links, figures, formulas, the evidence of its tables. The build itself is strict."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from block_reading import ROOT, pages, text

pytestmark = pytest.mark.slow  # whichever of them is the first one waits for the site
FIGURES = ("docs/**/*.svg", "docs/**/*.png")
SAYS_COMMIT = re.compile(rb"commit [0-9a-f]{7,40}; \w")
NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w,]*\d)(?:[kM]?B\+?)?")


class Links(HTMLParser):
    """What a page links to and loads, and the anchors that it has."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.to: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.to.append(found["href"])
        elif tag in ("img", "script", "iframe", "source") and "src" in found:
            self.loads.append(found["src"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon"):
            self.loads.append(found["href"])


def test_every_link_leads_to_a_page_and_an_anchor_that_are_there(site: Path):
    known = {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    wrong = []
    for page, links in known.items():
        for link in links.to:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme in ("https", "http"), (page, link)
                continue
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchors = known[there].anchors if there in known else {""}
            if not there.is_file() or unquote(parts.fragment) not in anchors:
                wrong.append(f"{page.relative_to(site)}: {link}")
    assert wrong == []


def test_a_page_loads_nothing_from_elsewhere(site: Path):
    for page in site.rglob("*.html"):
        for source in Links(page).loads:
            assert not urlsplit(source).netloc, (page, source)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_page_of_the_repository_is_on_the_site(site: Path):
    titles = [page.read_text(encoding="utf-8").partition("<title>")[2] for page in site.rglob("*.html")]
    assert len(titles) > len(pages())
    search = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    for name in ("choose.html", "contributing.html", "security.html", "results/verdicts.html", "api/mixers.html"):
        assert (site / name).is_file()
        assert name in search


def test_every_figure_says_with_what_and_at_which_commit_it_was_drawn():
    found = [path for pattern in FIGURES for path in sorted(ROOT.glob(pattern))]
    figures = [path for path in found if ROOT / "docs" / "site" not in path.parents]
    assert len(figures) > 30
    assert [path.name for path in figures if not SAYS_COMMIT.search(path.read_bytes())] == []


def test_every_number_of_the_tables_on_choosing_stands_where_its_row_says():
    page = text("docs/choose.md")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "](../benchmarks/results/" in line]
    assert len(rows) > 10
    for row in rows:
        evidence = " ".join(text(f"benchmarks/results/{name}") for name in re.findall(r"results/([\w-]+\.md)", row))
        for number in NUMBER.findall(re.sub(r"\]\([^)]*\)|`[^`]*`|WNUT-17|WikiText-2|SST-2|Multi30k|H200", "", row)):
            assert number in evidence, (number, row)
    table = page.partition("carried from token to token")[2].partition("\n\n")[0]
    of_one = text("benchmarks/results/compare.md").partition("## WikiText-2, characters")[2].partition("\n## ")[0]
    for name, state, speed, loss in re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \| (\S+) \|", table, re.MULTILINE):
        (row,) = [line for line in of_one.splitlines() if f"| {name} |" in line]
        assert {state, f"{speed} tokens/s", loss} <= {cell.strip() for cell in row.split("|")}, row


def test_formulas_are_set_without_a_library(site: Path, tmp_path: Path):
    code = (
        "import sys; sys.path.insert(0, 'docs/site')\n"
        "import markdown, formulas\n"
        r"page = 'a $x_t^2$, `$x$` and $HOME\n\n$$\n\\frac{1}{2}\n$$\n'"
        "\nprint(markdown.markdown(page, extensions=[formulas.Formulas()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert done.count("<math") == 2
    assert "<code>$x$</code> and $HOME" in done
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in done
