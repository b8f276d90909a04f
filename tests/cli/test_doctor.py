"""`regard doctor` tells the truth about this machine, and fails only where the core is broken."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from calling import call_here, told

from regard.run import doctor, extras

PROJECT = Path(__file__).parents[2]
LOOKED_AT = {"regard", "python", "packages", "torch", "threads", "memory", "disk", "triton", "compiler", "browser"}


def requires(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: list(lines))


def test_a_working_machine_is_told_and_well(here: Path):
    found = told("doctor")
    assert found["well"] is True
    assert {one["name"] for one in found["machine"]} >= LOOKED_AT
    assert list(here.iterdir()) == []


def test_an_extra_that_is_missing_comes_with_its_command(monkeypatch: pytest.MonkeyPatch):
    requires(monkeypatch, "torch>=2.0", "no-such-package>=1; extra == 'serve'", "torch>=999; extra == 'hf'")
    outcome = call_here("doctor")
    assert outcome.code == 0
    assert "no-such-package is missing" in outcome.out
    assert "pip install 'regard[serve]'" in outcome.out
    found = {one["name"]: one for one in told("doctor")["extras"]}
    assert "older than 999" in found["hf"]["lacks"][0]
    assert found["hf"]["install"] == "pip install 'regard[hf]'"


def test_an_extra_that_lacks_much_is_told_in_a_line_that_can_be_read(monkeypatch: pytest.MonkeyPatch):
    requires(monkeypatch, "torch>=2.0", *(f"no-such-{n}>=1; extra == 'test'" for n in range(30)))
    outcome = call_here("doctor")
    assert "no-such-3 is missing; and 26 more " in outcome.out
    assert max(map(len, outcome.out.splitlines())) < 240
    assert len(told("doctor")["extras"][0]["lacks"]) == 30


@pytest.mark.parametrize("line", ["no-such-package>=1", "torch>=999"])
def test_a_broken_core_is_exit_code_6(monkeypatch: pytest.MonkeyPatch, line: str):
    requires(monkeypatch, line)
    outcome = call_here("doctor", "--json")
    assert outcome.code == 6
    assert json.loads(outcome.out)["well"] is False


def test_a_torch_that_does_not_load_is_told_and_the_rest_is_still_examined(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = {one.name: one for one in doctor.diagnose().findings}
    assert found["torch"].is_well is False
    assert "pip install" in found["torch"].advice
    assert found["memory"].is_well


def test_a_look_that_fails_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch):
    def unknown() -> int:
        raise OSError("the system does not tell")

    monkeypatch.setattr(doctor, "host_memory", unknown)
    found = doctor.diagnose()
    assert found.is_well
    assert any(one.value == "the system does not tell" for one in found.findings)


def test_a_package_for_older_pythons_is_not_asked_for():
    assert extras.parsed("x>=1; python_version < '3.0' and extra == 'tables'") is None
    assert extras.parsed('x>=1; python_version < "9.0" and extra == "tables"') == extras.Requirement("x", "1", "tables")


def test_every_extra_says_what_it_is_for():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras.PURPOSES) >= set(project["optional-dependencies"])
