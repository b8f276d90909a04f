"""Running studies: what is read again, what is found anew, and what a signal or a failure leaves."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from regard.errors import CheckpointError, LockedError, Stopped, UsageError
from regard.storage.lock import only_writer
from regard.studies import registry, reproduce
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged


class Tossed(Study):
    id: ClassVar[str] = "mask"
    claim: ClassVar[str] = "A coin falls."
    source: ClassVar[str] = "a table"
    rule: ClassVar[str] = "it falls"
    tosses: ClassVar[list[int]] = []

    def measure(self, lab: Lab) -> dict[str, Any]:
        self.tosses.append(lab.seed)
        return {"fell": True}

    def judge(self, found: Sequence[Found]) -> Verdict:
        return judged(found, lambda one: one["fell"], "it fell")

    def figure(self, found: Sequence[Found]) -> str:
        return "<svg/>"


@pytest.fixture
def tossed(monkeypatch: pytest.MonkeyPatch) -> type[Tossed]:
    study = type("Now", (Tossed,), {"tosses": []})
    monkeypatch.setattr(reproduce, "study", lambda _: study())
    return study


def run(out: Path, **given: Any) -> list[reproduce.Result]:
    return list(reproduce.reproduce(["mask"], "cpu", out=out, **given))


def test_a_finished_study_is_read_again(tossed: type[Tossed], tmp_path: Path) -> None:
    assert [one.outcome for one in (*run(tmp_path), *run(tmp_path))] == ["holds", "holds"]
    assert tossed.tosses == [0, 1, 2]
    run(tmp_path, force=True)
    assert tossed.tosses == [0, 1, 2, 0, 1, 2]


def test_another_rule_or_version_is_found_anew(
    tossed: type[Tossed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    tossed.rule = "it falls on its face"
    assert run(tmp_path)[0].rule == "it falls on its face"
    assert len(tossed.tosses) == 6
    monkeypatch.setattr(reproduce, "__version__", "0.0")
    run(tmp_path)
    assert len(tossed.tosses) == 9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_and_the_seeds_before_it_are_kept(number: int, tossed: type[Tossed], tmp_path: Path) -> None:
    def measure(self: Tossed, lab: Lab) -> dict[str, Any]:
        if lab.seed == 1:
            os.kill(os.getpid(), number)
        return Tossed.measure(self, lab)

    tossed.measure = measure
    with pytest.raises(Stopped, match="same command goes on"):
        run(tmp_path)
    assert not (tmp_path / "mask.json").exists()
    tossed.measure = Tossed.measure
    assert run(tmp_path)[0].outcome == "holds"
    assert tossed.tosses == [0, 1, 2]


def test_a_study_that_breaks_in_any_way_is_a_result(tossed: type[Tossed], tmp_path: Path) -> None:
    def measure(self: Tossed, lab: Lab) -> dict[str, Any]:
        raise KeyError("coin")

    whole = tossed.measure
    tossed.measure = measure
    assert run(tmp_path)[0].outcome == "failed"
    # A verdict is not lost to a later failure.
    tossed.measure = whole
    assert run(tmp_path)[0].outcome == "holds"
    kept = (tmp_path / "mask.json").read_bytes()
    tossed.measure = measure
    assert next(iter(reproduce.reproduce(["mask"], "cpu", out=tmp_path, force=True))).outcome == "failed"
    assert (tmp_path / "mask.json").read_bytes() == kept


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"found": 5, "seconds": 1}'])
def test_a_damaged_seed_is_found_anew(content: str, tossed: type[Tossed], tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "mask.json").unlink()
    (tmp_path / "seeds" / "mask-cpu-cpu-1.json").write_text(content)
    assert run(tmp_path)[0].outcome == "holds"
    assert tossed.tosses == [0, 1, 2, 1]


def test_one_writer(tossed: type[Tossed], tmp_path: Path) -> None:
    with only_writer(tmp_path), pytest.raises(LockedError):
        run(tmp_path)
    assert tossed.tosses == []
    results = reproduce.reproduce(["mask"], "cpu", out=tmp_path)
    next(results)
    with pytest.raises(LockedError):
        run(tmp_path)
    results.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert json.loads((tmp_path / "mask.json").read_text())["outcome"] == "holds"


@pytest.mark.parametrize("name", reproduce.names())
def test_the_source_of_a_claim_is_told_in_words(name: str) -> None:
    assert not re.search(r"\bS\d-\d\d\b", reproduce.study(name).source)


def test_the_figure_of_a_training_has_its_steps() -> None:
    one = {"curve": [3.0, 2.0, 1.0], "every": 8, "train": 1.0, "left_to_right": 2.0}
    figure = reproduce.study("mask").figure([{"masked": one, "unmasked": one}])
    assert ">steps<" in figure
    assert ">time<" not in figure


@pytest.mark.parametrize("number", range(len(registry.PAPERS)))
def test_a_study_of_a_paper_is_known_by_its_name_its_file_and_its_number(number: int) -> None:
    name = registry.PAPERS[number]
    one = reproduce.study(f"p{number}")
    assert (one.id, type(one).__module__) == (name, f"regard.studies.claims.{name}")
    assert type(reproduce.study(name)) is type(one)


def test_what_was_kept_under_the_number_of_a_paper_is_read_again(
    tossed: type[Tossed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tossed.id = "ladder"
    run(tmp_path)
    for path in (*tmp_path.glob("ladder.*"), *(tmp_path / "seeds").glob("ladder-*")):
        path.write_text(path.read_text().replace('"study": "ladder"', '"study": "p0"'))
        path.rename(path.with_name(path.name.replace("ladder", "p0")))
    assert [(one.study, one.figure) for one in run(tmp_path)] == [("ladder", "<svg/>")]
    assert reproduce.kept("ladder", tmp_path) is not None
    (tmp_path / "p0.json").unlink()
    assert run(tmp_path)[0].outcome == "holds"
    assert tossed.tosses == [0, 1, 2]


def test_a_study_from_outside_comes_through_the_same_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_studies", dict(registry._studies))
    mine = registry.register_study(type("Mine", (Tossed,), {"id": "coin"}))
    assert isinstance(reproduce.study("coin"), mine)
    assert reproduce.names()[-1] == "coin"
    for name in ("mask", "p3"):
        with pytest.raises(UsageError, match="is taken by"):
            registry.register_study(type("Mine", (Tossed,), {"id": name}))


SCRIPT = "<script>alert(1)</script>"


def test_no_word_or_figure_of_a_results_folder_is_markup_of_the_page(tossed: type[Tossed], tmp_path: Path) -> None:
    run(tmp_path)
    told = json.loads((tmp_path / "mask.json").read_text())
    words = dict.fromkeys(("claim", "source", "rule", "reason", "device"), SCRIPT) | {"versions": {SCRIPT: SCRIPT}}
    (tmp_path / "mask.json").write_text(json.dumps(told | words))
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg">{SCRIPT}</svg>'
    (tmp_path / "mask.svg").write_text(drawing)
    found = reproduce.saved(tmp_path / "mask.json")
    assert found is not None
    page = reproduce.verdicts_page([found])
    assert SCRIPT not in page
    assert "default-src 'none'" in page
    assert base64.b64encode(drawing.encode()).decode() in page
    (tmp_path / "mask.json").write_text(json.dumps(told | {"study": f'mask"{SCRIPT}'}))
    assert reproduce.saved(tmp_path / "mask.json") is None
    assert SCRIPT not in reproduce.verdicts_page([dataclasses.replace(found, study=SCRIPT)])


HOSTILE: dict[str, tuple[Any, ...]] = {
    "outcome": ("maybe", None, []),
    "scale": ("huge", {}),
    "seconds": ("x", None),
    "versions": ([], {"torch": 3}),
    "seeds": (None, [3]),
    "claim": (5, None),
}


@pytest.mark.parametrize("key", HOSTILE)
def test_a_result_that_is_malformed_is_none(key: str, tossed: type[Tossed], tmp_path: Path) -> None:
    run(tmp_path)
    told = json.loads((tmp_path / "mask.json").read_text())
    for value in HOSTILE[key]:
        (tmp_path / "mask.json").write_text(json.dumps(told | {key: value}))
        assert reproduce.saved(tmp_path / "mask.json") is None


def test_a_link_in_the_place_of_the_seeds_is_refused(tossed: type[Tossed], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "seeds").symlink_to(mine)
    with pytest.raises(CheckpointError, match="seeds: is a link"):
        run(tmp_path / "out")
    assert os.listdir(mine) == []
