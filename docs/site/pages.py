"""Where pages of the repository lie on the site: those of docs/ as they are, others under a name of their own.

A link on a page means what it means in the repository. On the site it leads to the same file: to its page, or, of a
file that is no page, to one that shows its text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
NAMED = {
    "README.md": "tour.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CHANGELOG.md": "changelog.md",
}
FOLDERS = {"benchmarks/results": "results", "examples": "examples"}
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+).+?\1", re.DOTALL)
# Of Markdown, and of a picture that is written as HTML.
LINK = re.compile(r"(\]\(|\b(?:src|srcset)=\")([^()\s\"]+)(\)|\")")
# Where the text of a link is the name of a page's file, the site has the name of the page.
FILE_NAME = re.compile(r"\[(?:\.\./)?(?:docs/|benchmarks/results/)?([\w-]+)\.md\](?=\()")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".sbatch": "bash", ".service": "ini", ".conf": "nginx"}


def outside() -> dict[str, str]:
    """The pages that lie outside docs/, by their path in the repository, and the page of the site that each is."""
    found = dict(NAMED)
    for path in sorted((ROOT / "benchmarks/results").glob("*.md")):
        found[f"benchmarks/results/{path.name}"] = f"results/{path.name}"
    for path in sorted((ROOT / "examples").glob("*/README.md")):
        found[f"examples/{path.parent.name}/README.md"] = f"examples/{path.parent.name}.md"
    return found


def page_of(path: str) -> str:
    """The page of the site for a file or folder of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path == "benchmarks/results":
        return "results/index.md"
    pages = outside()
    return pages.get(path) or pages.get(f"{path}/README.md") or f"source/{path}.md"


def in_text(markdown: str, change: Callable[[str], str]) -> str:
    """Markdown with its text changed and its code left alone."""
    for code in (FENCE, SPAN):
        if code.search(markdown):
            parts, at = [], 0
            for found in code.finditer(markdown):
                parts += [in_text(markdown[at : found.start()], change), found.group()]
                at = found.end()
            return "".join([*parts, in_text(markdown[at:], change)])
    return change(markdown)


def links(markdown: str) -> Iterator[str]:
    """The targets of the links and pictures of a page."""
    found: list[str] = []

    def noted(text: str) -> str:
        found.extend(match[2] for match in LINK.finditer(text))
        return text

    in_text(markdown, noted)
    return iter(found)


def target(link: str, path: str) -> str | None:
    """The path in the repository that a link of the page at `path` leads to.

    None: it leads elsewhere, or within the page; out of the repository too, where nothing may be read for the site.
    """
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), parts.path))
    return None if found.startswith(("/", "../")) else found


def rewritten(markdown: str, path: str, page: str) -> str:
    """A page's Markdown with the links that it has on the site. path: in the repository, page: on the site."""

    def moved(match: re.Match[str]) -> str:
        found = target(match[2], path)
        if found is None:
            return match[0]
        fragment = urlsplit(match[2]).fragment
        there = posixpath.relpath(page_of(found), posixpath.dirname(page) or ".")
        return f"{match[1]}{there}{'#' + fragment if fragment else ''}{match[3]}"

    return in_text(markdown, lambda text: LINK.sub(moved, FILE_NAME.sub(r"[\1]", text)))


def shown_file(path: str) -> str:
    """The page of a file that is no page: its text. Of a folder: what lies in it."""
    place = ROOT / path
    if place.is_dir():
        names = sorted(child.name for child in place.iterdir() if not child.name.startswith((".", "__")))
        return f"# {path}\n\n" + "".join(f"- `{name}`\n" for name in names)
    text = place.read_text(encoding="utf-8")
    language = LANGUAGES.get(place.suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n````{language}\n{text.rstrip()}\n````\n"


def measured(pages: dict[str, str]) -> str:
    """The page of all results: what each is about, in its own first line."""
    lines = ["# What was measured", "", "Every table says with what it was made and on what machine.", ""]
    for path, page in sorted(pages.items()):
        if page.startswith("results/"):
            heading = (ROOT / path).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            lines.append(f"- [{heading}]({page.removeprefix('results/')})")
    return "\n".join(lines) + "\n"
