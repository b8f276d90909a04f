"""What is published: two builds are equal to the byte, and hold what they must and no tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOMENT = "1700000000"
FOLDERS = ("src", "lectures")
PAPERS = (
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "SECURITY.md",
)
IN_THE_PACKAGE = (
    *("py.typed", "run/index.json", "run/recipes/awd-lstm.toml", "kernels/decode_cpu.c"),
    *("explain/web/lab.html", "explain/web/style.css", "serving/web/serve.js"),
)


def built(tree: Path, out: Path, *targets: str) -> list[Path]:
    """The wheel, the sdist or both of a tree, the wheel first."""
    asked = [sys.executable, "-m", "hatchling", "build", *(word for one in targets for word in ("-t", one))]
    environment = os.environ | {"SOURCE_DATE_EPOCH": MOMENT}
    done = subprocess.run([*asked, "-d", str(out)], cwd=tree, env=environment, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    return sorted(out.iterdir(), key=lambda path: path.suffix != ".whl")


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return built(ROOT, tmp_path_factory.mktemp("dist"), "wheel", "sdist")


def elsewhere(folder: Path) -> Path:
    """A copy of what is built, in another place, of another time and with other rights, where somebody has worked."""
    for name in FOLDERS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for name in ("lectures/.ipynb_checkpoints/own.ipynb", "lectures/runs/mine/text.txt", "lectures/notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("of nobody else", encoding="utf-8")
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))
            path.chmod(0o600)
    return folder


def test_two_builds_from_different_places_are_equal_to_the_byte(builds: list[Path], tmp_path: Path):
    (tmp_path / "tree").mkdir()
    again = built(elsewhere(tmp_path / "tree"), tmp_path / "dist", "wheel", "sdist")
    assert [path.name for path in again] == [path.name for path in builds]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in builds]


def test_the_wheel_of_the_sdist_is_that_of_the_checkout(builds: list[Path], tmp_path: Path):
    with tarfile.open(builds[1]) as packed:
        packed.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    (wheel,) = built(tree, tmp_path / "dist", "wheel")
    assert wheel.read_bytes() == builds[0].read_bytes()


def test_the_wheel_holds_the_package_its_pages_and_its_licence(builds: list[Path]):
    with zipfile.ZipFile(builds[0]) as packed:
        names = set(packed.namelist())
        metadata = packed.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    assert {f"regard/{name}" for name in IN_THE_PACKAGE} <= names
    tracked = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert tracked <= names
    notebooks = {path.name for path in (ROOT / "lectures").glob("*.ipynb")}
    assert {f"regard/lectures/notebooks/{name}" for name in notebooks} <= names
    assert {name.partition("/")[0].rpartition(".")[2] for name in names} == {"regard", "dist-info"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert "License-Expression: Apache-2.0" in metadata


def test_an_editable_install_leads_to_the_checkout_and_copies_nothing_of_it(tmp_path: Path):
    asked = f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", asked], cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as packed:
        (path,) = [name for name in packed.namelist() if ".dist-info/" not in name]
        assert packed.read(path).decode().strip() == str(ROOT / "src")


def test_the_sdist_holds_source_and_papers_and_no_tests(builds: list[Path]):
    with tarfile.open(builds[1]) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {*PAPERS, "pyproject.toml", "src/regard/py.typed"} <= names
    assert {name.partition("/")[0] for name in names if "/" in name} <= {"src", "lectures"}
