"""What is installed beside regard, as a software bill of materials: CycloneDX 1.6 in JSON, on standard output.

    python docs/sbom.py > regard.cdx.json

It lists regard, its extras and what they need in this environment, with versions, licences and who needs whom. The same
environment gives the same bytes: its serial number is made of what it lists, its time is SOURCE_DATE_EPOCH if set.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from typing import Any

NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of addresses, RFC 9562
REQUIRED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")  # a package, and which of its extras
EXTRA = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)")
LONGEST_LICENCE = 80  # of a name; some packages have the whole text in its place
SUBJECT = "regard"


def main() -> None:
    installed = found_on_the_path()
    if SUBJECT not in installed:
        sys.exit(f"{SUBJECT} is not installed in this environment; pip install it first")
    print(json.dumps(bill(installed), indent=1, sort_keys=True))


def found_on_the_path() -> dict[str, Distribution]:
    """What is installed, by its normal name: the first of a name, which is what is imported; no half-removed ones."""
    found: dict[str, Distribution] = {}
    for one in distributions():
        if any(map(one.read_text, ("METADATA", "PKG-INFO"))):
            found.setdefault(name_of(one), one)
    return found


def bill(installed: dict[str, Distribution]) -> dict[str, Any]:
    """The bill of regard in an environment, by the normal names of what is installed there."""
    needed = closure(SUBJECT, installed)
    parts = [component(name, installed[name]) for name in sorted(needed.keys() - {SUBJECT})]
    edges = [
        {"ref": ref(installed[name]), "dependsOn": sorted(ref(installed[one]) for one in needed[name])}
        for name in sorted(needed)
    ]
    told = json.dumps([parts, edges], sort_keys=True)
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, told)}",
        "version": 1,
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(SUBJECT, installed[SUBJECT]) | {"type": "application"},
        },
        "components": parts,
        "dependencies": edges,
    }


def name_of(one: Distribution) -> str:
    """The name of a package as indexes compare names."""
    return normal(one.metadata["Name"])


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str, installed: dict[str, Distribution]) -> dict[str, set[str]]:
    """A package and all that it needs, directly or by others, as far as it is installed: each with what it needs."""
    found: dict[str, set[str]] = {}
    met, left = set[tuple[str, str]](), [(name, "")]
    while left:
        one = left.pop()
        if one not in met:
            met.add(one)
            asked = [need for need in needs(*one, installed) if need[0] in installed]
            found.setdefault(one[0], set()).update(need for need, _ in asked if need != one[0])
            left += asked
    return found


def needs(name: str, extra: str, installed: dict[str, Distribution]) -> Iterator[tuple[str, str]]:
    """What a package asks for, or one of its extras: names and their extras, "" for the package itself.

    Of regard all extras count, whoever installed what is in them.
    """
    for line in installed[name].requires or []:
        match, of = REQUIRED.match(line), {normal(one) for one in EXTRA.findall(line)} or {""}
        if match and (name == SUBJECT or normal(extra) in of):
            for one in ("", *re.split(r"\s*,\s*", (match[2] or "").strip())):
                yield normal(match[1]), one


def component(name: str, one: Distribution) -> dict[str, Any]:
    """A package: what it is called everywhere, and under which licence it comes."""
    plain = {"type": "library", "bom-ref": ref(one), "name": name, "version": one.version, "purl": ref(one)}
    told = licence(one)
    return plain | ({"licenses": [told]} if told else {})


def ref(one: Distribution) -> str:
    """Its package URL, a local version written as such URLs ask."""
    return f"pkg:pypi/{name_of(one)}@{one.version.replace('+', '%2B')}"


def licence(one: Distribution) -> dict[str, Any] | None:
    """As an expression where the package has one, else by name; None where it tells none."""
    meta = one.metadata
    if expression := meta.get("License-Expression"):
        return {"expression": expression}
    named = [line.rpartition("::")[2].strip() for line in meta.get_all("Classifier") or [] if "License ::" in line]
    plain = (meta.get("License") or "").strip()
    short = plain if plain and "\n" not in plain and len(plain) <= LONGEST_LICENCE else ""
    name = short or " or ".join(named)
    return {"license": {"name": name}} if name else None


if __name__ == "__main__":
    main()
