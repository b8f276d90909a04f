"""The pages of models: one for each, telling what the package tells, with formulas that can be typeset, links that lead
somewhere and commands that run.
"""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from calling import call_here

from regard.charts.formula import mathml
from regard.core import registry
from regard.run.catalogue import ModelCard, models

DOCS = Path(__file__).parents[2] / "docs"
NAMES = list(registry.MODELS)
SECTIONS = ("Equation", "Worked numbers", "Cost", "When to use it", "Commands", "Laws")
WORLDS = {
    "world:stories": "world:stories?train=60&valid=6",
    "world:dates": "world:dates?train=40&valid=4",
    "world:shapes": "world:shapes?train=24&valid=4",
    "world:reviews": "world:reviews?train=40&valid=8",
    "world:ratings": "world:ratings?train=40&valid=8",
    "world:topics": "world:topics?train=40&valid=8",
    "world:tags": "world:tags?train=30&valid=6",
    "world:electricity": "world:electricity?train=30&valid=3",
}
SHORT = ("--size", "tiny", "--budget", "2steps", "--device", "cpu", "--quiet")


@pytest.fixture(scope="module")
def tells() -> ModuleType:
    """docs/models.py, which writes what a page does not say by hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        return importlib.import_module("models")


@pytest.fixture(scope="module")
def cards() -> dict[str, ModelCard]:
    return {card.name: card for card in models()}


def page(name: str) -> str:
    return (DOCS / "models" / f"{name}.md").read_text(encoding="utf-8")


def test_every_model_has_a_page_and_every_page_a_model():
    assert {path.stem for path in (DOCS / "models").glob("*.md")} == {*NAMES, "index"}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_all_its_parts_in_their_order(name: str):
    text = page(name)
    assert text.startswith(f"# {name}: ")
    found = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [one for one in found if one in SECTIONS] == list(SECTIONS)
    assert f"regard check {name}\n" in text


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_tells_what_the_package_tells(name: str, tells: ModuleType, cards: dict[str, ModelCard]):
    again = "write it anew with python docs/models.py"
    assert tells.renewed(page(name), cards[name], tells.FACTS) == page(name), again


@pytest.mark.sweep(13)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("unchecked_shapes")
def test_a_page_tells_the_laws_that_its_model_keeps(name: str, tells: ModuleType, cards: dict[str, ModelCard]):
    again = "write it anew with python docs/models.py laws"
    assert tells.renewed(page(name), cards[name], {"laws": tells.laws}) == page(name), again


def test_the_index_lists_every_model(tells: ModuleType):
    assert tells.index(page("index")) == page("index"), "write it anew with python docs/models.py"
    assert all(f"({name}.md)" in page("index") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_formula_of_a_page_can_be_typeset(name: str):
    blocks = re.findall(r"^\$\$(.+)\$\$$", page(name), re.MULTILINE)
    assert blocks
    for tex in blocks:
        assert mathml(tex, block=True)[0] == "math"
    for tex in re.findall(r"(?<!\$)\$([^$\n]+)\$(?!\$)", page(name)):
        assert mathml(tex)[0] == "math"


@pytest.mark.parametrize("name", [*NAMES, "index"])
def test_every_link_of_a_page_leads_to_a_file(name: str):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page(name)):
        assert (DOCS / "models" / target).exists(), target


@pytest.mark.sweep(5)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("unchecked_shapes")
def test_the_commands_of_a_page_run_in_their_order(name: str, here: Path):
    (block,) = re.findall(r"^```\n(.*?)^```", page(name), re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        _, *argv = shlex.split(line)
        argv = [WORLDS.get(word, word) for word in argv]
        outcome = call_here(*argv, *(SHORT if argv[0] == "train" else ()))
        assert outcome.code == 0, (line, outcome.err)
