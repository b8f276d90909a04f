"""The plug-in of `examples/plugin` in tests: installed as an installer leaves it, or copied under names of its own."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"
PACKAGE = PLUGIN / "src" / "regard_retention"
# What the plug-in registers something under.
NAMES = ("retention", "retention-fast", "retnet", "grader", "ordinal", "decay", "half_life")


def installed(target: Path) -> Path:
    """A folder for the path of Python with the package and its metadata in it.

    The metadata are written here from `pyproject.toml`, as a build backend does: so no test needs one, nor a network.
    """
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(PACKAGE, target / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    info = target / f"{PACKAGE.name}-{project['version']}.dist-info"
    info.mkdir()
    told = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(told, encoding="utf-8")
    groups = project["entry-points"].items()
    lines = [line for group, points in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return target


def copied(folder: Path, name: str, changes: Sequence[tuple[str, str]] = ()) -> str:
    """The package in `folder` as `name`_parts, with all that it registers called after `name`; its name is returned.

    changes  (before, after) in its texts, such as planted errors.
    """
    package = f"{name}_parts"
    (folder / package).mkdir()
    texts = {file.name: file.read_text(encoding="utf-8") for file in PACKAGE.glob("*.py")}
    for before, after in changes:
        assert any(before in text for text in texts.values()), before
        texts = {file: text.replace(before, after) for file, text in texts.items()}
    for file, text in texts.items():
        for word in NAMES:
            text = text.replace(f'"{word}"', f'"{name}_{word}"')
        (folder / package / file).write_text(text.replace(PACKAGE.name, package), encoding="utf-8")
    return package
