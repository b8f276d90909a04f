"""The version stands in three places and is one; the format of run folders is told where people look for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import regard
from regard.storage.format import FIRST, STEPS

ROOT = Path(__file__).parents[2]


def test_every_place_that_tells_the_version_tells_the_same():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    changed = re.search(r"^## ([^,\n]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert changed is not None
    assert {project, cited[1], changed[1], regard.__version__} == {project}


def test_the_page_of_releases_tells_every_format():
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (\w*) ?\|", page, re.MULTILINE)
    assert rows == [(str(FIRST), ""), *((str(step.to), step.name) for step in STEPS)]


def test_the_page_of_releases_names_scripts_that_are_there():
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    for name in ("docs/sbom.py", "docs/models.py", "tests/kept/keep.py", "tests/release/try_wheel.sh", ".ci/full"):
        assert name in page
        assert (ROOT / name).exists()
