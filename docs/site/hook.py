"""What mkdocs is told while it builds: pages from outside docs/, the nav's patterns, formulas, figures, headings."""

from __future__ import annotations

import fnmatch
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import figures
import formulas
import lean
import order
import pages
import reference
import tables

# A list that follows a line of text is one on GitHub; Python-Markdown wants an empty line before it.
LIST_AFTER_TEXT = re.compile(r"^(?![-*+|>#\s]|\d+\. )([^\n]+\n)(?=(?:[-*+]|\d+\.) )", re.MULTILINE)
# A box to tick is one on GitHub; here it is a sign.
TO_TICK = re.compile(r"^- \[ \] ", re.MULTILINE)

SEARCH = 'data-md-component="search" role="dialog"'
# The page is there to be read before the theme's script, a third of its bytes, is looked at: site.js starts it.
BUNDLE = re.compile(r'<script src="([^"]*assets/javascripts/bundle[^"]*)">')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs.setdefault("toc", {})["slugify"] = anchor
    config.markdown_extensions.append(formulas.Formulas())
    return config


def anchor(heading: str, separator: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = {page: (pages.ROOT / path).read_text(encoding="utf-8") for path, page in pages.outside().items()}
    made["results/index.md"] = pages.measured(pages.outside())
    made |= reference.api_pages(pages.ROOT / "src" / "regard")
    made |= _linked_files(files)
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    config.nav = _filled(config.nav, sorted(file.src_uri for file in files.documentation_pages()))
    return files


def _linked_files(files: Files) -> dict[str, str]:
    """Pages of the files that are linked to and are no pages or pictures themselves."""
    texts = {path: (pages.ROOT / path).read_text(encoding="utf-8") for path in pages.outside()}
    texts |= {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    linked = {pages.target(link, path) for path, text in texts.items() for link in pages.links(text)}
    return {
        pages.page_of(path): pages.shown_file(path)
        for path in sorted(filter(None, linked))
        if pages.page_of(path).startswith("source/") and (pages.ROOT / path).exists()
    }


def _filled(nav: Any, found: list[str], taken: set[str] | None = None) -> Any:
    """A nav whose patterns are the pages they match, less those that have a place of their own."""
    taken = set(_named(nav)) if taken is None else taken
    if isinstance(nav, dict):
        filled = {title: _filled(entry, found, taken) for title, entry in nav.items()}
        return {title: entry for title, entry in filled.items() if entry}
    if isinstance(nav, list):
        entries = [_matches(one, found, taken) if _is_pattern(one) else [_filled(one, found, taken)] for one in nav]
        return [entry for some in entries for entry in some if entry]
    return nav


def _matches(pattern: str, found: list[str], taken: set[str]) -> list[str | dict[str, str]]:
    """The pages of a pattern. Those of models are looked for by their names, which their headings explain."""
    beside = [page for page in found if page.count("/") == pattern.count("/") and page not in taken]
    ordered = sorted(fnmatch.filter(beside, pattern), key=order.place)
    return [{Path(page).stem: page} if pattern.startswith("models/") else page for page in ordered]


def _named(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [] if _is_pattern(nav) else [nav]
    return [page for entry in (nav.values() if isinstance(nav, dict) else nav) for page in _named(entry)]


def _is_pattern(entry: Any) -> bool:
    return isinstance(entry, str) and "*" in entry


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    homes = {there: path for path, there in pages.outside().items()}
    path = homes.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if path.startswith("docs/") and page.file.generated_by:
        return markdown
    markdown = pages.in_text(markdown, lambda text: LIST_AFTER_TEXT.sub(r"\1\n", TO_TICK.sub("- \u2610 ", text)))
    # What is folded away is Markdown too, as on GitHub.
    markdown = markdown.replace("<details>", '<details markdown="1">')
    return pages.rewritten(markdown, path, page.file.src_uri)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    return _mended(output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    return _mended(output_content) if template_name.endswith(".html") else output_content


def _mended(output: str) -> str:
    # The theme's box of the search is a dialog without a name.
    return BUNDLE.sub(
        r'<script type="text/plain" id="theme" data-src="\1">', output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
    )


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return tables.boxed(figures.placed(html, Path(config.docs_dir), page.file.src_uri))


def on_post_build(config: MkDocsConfig) -> None:
    lean.slim(Path(config.site_dir))
