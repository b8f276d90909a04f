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


def test_the_same_environment_has_the_same_bill():
    again = told("1800000000")
    assert again["serialNumber"] == told()["serialNumber"]
    assert again["components"] == told()["components"]
