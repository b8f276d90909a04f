"""The bill of materials: CycloneDX in form, whole in its edges, the same for the same environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "docs" / "sbom.py"


@cache
def told(moment: str = "1700000000") -> Any:
    environment = os.environ | {"SOURCE_DATE_EPOCH": moment}
    done = subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_the_bill_has_the_form_of_cyclonedx():
    bill = told()
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert uuid.UUID(bill["serialNumber"].removeprefix("urn:uuid:"))
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert bill["metadata"]["component"]["name"] == "regard"
    for part in bill["components"]:
        assert part["type"] == "library"
        assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[^+ ]+", part["purl"])
        for licence in part.get("licenses", []):
            assert licence.keys() in ({"expression"}, {"license"})


def test_what_the_package_needs_is_in_the_bill_with_its_version():
    found = {part["name"]: part["version"] for part in told()["components"]}
    for name in ("torch", "numpy", "tokenizers", "safetensors", "jaxtyping", "typer", "rich"):
        assert found[name] == version(name)
    assert len(found) == len(told()["components"])


def test_every_edge_leads_to_a_part_and_every_part_is_reached_from_the_package():
    edges = {one["ref"]: one["dependsOn"] for one in told()["dependencies"]}
    parts = {part["bom-ref"] for part in told()["components"]}
    root = told()["metadata"]["component"]["bom-ref"]
    assert edges.keys() == parts | {root}
    reached, left = set[str](), [root]
    while left:
        one = left.pop()
        if one not in reached:
            reached.add(one)
            left += edges[one]
    assert reached == parts | {root}


def package(folder: Path, name: str, number: str, *needs: str) -> None:
    """What pip leaves of a package beside its modules."""
    (folder / f"{name}-{number}.dist-info").mkdir(parents=True)
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {number}"]
    lines += [f"Requires-Dist: {one}" for one in needs]
    (folder / f"{name}-{number}.dist-info" / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_extras_of_what_is_needed_count_and_of_two_versions_the_one_that_is_imported(tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    package(first, "regard", "9.0", "tool[quick]>=1; extra == 'docs'", "plain")
    package(first, "tool", "1.0", "tool[base]; extra == 'quick'", "engine ; extra == 'base'", "other ; extra == 'more'")
    for name in ("engine", "other", "plain", "stranger"):
        package(first, name, "2.0")
    package(second, "plain", "1.0")
    (second / "~lain-1.0.dist-info").mkdir()  # of an uninstall that was cut off
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (first, second)))}
    done = subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, timeout=60, check=True)
    bill = json.loads(done.stdout)
    assert [(part["name"], part["version"]) for part in bill["components"]] == [
        ("engine", "2.0"),
        ("plain", "2.0"),
        ("tool", "1.0"),
    ]
    (edge,) = [one for one in bill["dependencies"] if one["ref"] == "pkg:pypi/tool@1.0"]
    assert edge["dependsOn"] == ["pkg:pypi/engine@2.0"]


def test_the_same_environment_has_the_same_bill():
    again = told("1800000000")
    assert again["serialNumber"] == told()["serialNumber"]
    assert again["components"] == told()["components"]
