"""Which folders are runs, what the list says of them, and their curves."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from regard.errors import CheckpointError, UsageError
from regard.serving import curves
from regard.serving.curves import learning_curves
from regard.serving.provider import RunProvider
from regard.serving.shelf import MOST, facts, found_runs
from regard.storage import manifest
from regard.storage.manifest import Manifest
from regard.training.metrics import CURVE, curve


def made(folder: Path, **config: object) -> Path:
    """A folder that looks like a run."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def hashed(folder: Path, config: object) -> Path:
    """The same with a manifest that fits."""
    folder.mkdir(parents=True)
    content = config if isinstance(config, str) else json.dumps(config)
    files = {"config.json": manifest.write_file(folder / "config.json", [content.encode("utf-8", "surrogatepass")])}
    (folder / manifest.NAME).write_bytes(Manifest(files=files).to_bytes())
    return folder


def trained(folder: Path, *losses: float) -> Path:
    """The same with held-out losses, one every ten steps."""
    made(folder)
    lines = [
        {
            "step": 10 * place,
            "tokens": 1000 * place,
            "seconds": 2.0 * place,
            "valid_loss": loss,
            "valid_bleu": 10 / loss,
        }
        for place, loss in enumerate(losses, 1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_without_names_the_runs_under_runs_are_found_comparisons_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert found_runs([]) == {}
    for name in ("b", "a", "race/lstm/lr-0.1", "race/gpt/lr-0.1", ".trash/old", "a/checkpoints/5", "deep/er/than/that"):
        made(tmp_path / "runs" / name)
    (tmp_path / "runs" / "note.txt").write_text("no run")
    assert sorted(found_runs([])) == ["runs/a", "runs/b", "runs/race/gpt/lr-0.1", "runs/race/lstm/lr-0.1"]


def test_the_list_has_an_end_and_the_newest_runs_come_first(tmp_path: Path) -> None:
    for number in range(MOST + 5):
        os.utime(made(tmp_path / f"{number:04}") / "config.json", (number, number))
    found = found_runs([str(tmp_path)])
    assert [path.name for path in found.values()] == [f"{number:04}" for number in range(MOST + 4, 4, -1)]


def test_a_run_that_appears_later_is_listed_before_the_others_and_one_that_has_gone_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    provider = RunProvider(lambda: found_runs([], strict=False))
    assert provider.runs() == []
    for number, name in enumerate(("old", "new")):
        os.utime(made(Path("runs") / name) / "config.json", (number, number))
    assert [run["label"] for run in provider.runs()] == ["new", "old"]
    shutil.rmtree("runs/new")
    assert [run["label"] for run in provider.runs()] == ["old"]
    shutil.rmtree("runs")
    assert found_runs(["runs"], strict=False) == {}


def test_runs_whose_names_have_spaces_and_odd_characters_are_found_by_the_name_that_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["my run", "a#b&c=d%41+e?", "ünï \N{SNOWMAN}", "'\"<b>", "two\nlines", os.fsdecode(b"no \xff text")]
    for name in names:
        trained(Path("runs") / name, 4.0)
    provider = RunProvider(lambda: found_runs([], strict=False))
    told = json.loads(json.dumps([run["name"] for run in provider.runs()]))
    assert len(told) == len(names)
    for name in told:
        assert name.encode()  # it can be printed and sent
        assert provider.curves([name], {})["curves"].lines


def test_a_folder_that_may_not_be_looked_into_is_passed_over(tmp_path: Path) -> None:
    made(tmp_path / "good")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / ("x" * 200) / ("y" * 200)).mkdir(parents=True)
    assert [path.name for path in found_runs([str(tmp_path)]).values()] == ["good"]


def test_a_named_folder_is_a_run_or_holds_some(tmp_path: Path) -> None:
    run = made(tmp_path / "race" / "gpt")
    assert list(found_runs([str(run)]).values()) == [run]
    assert list(found_runs([str(tmp_path / "race")]).values()) == [run]
    (tmp_path / "empty").mkdir()
    for name, told in (("empty", "no run"), ("missing", "no such run folder")):
        with pytest.raises(CheckpointError, match=f"{name}: {told}"):
            found_runs([str(tmp_path / name)])


def test_a_damaged_run_is_listed_with_what_is_wrong(tmp_path: Path) -> None:
    told = facts("runs/x", made(tmp_path / "x"))
    assert told["label"] == "x"
    assert "error" in told  # it has no manifest
    assert "model" not in told


@pytest.mark.parametrize("part", ["model", "data"])
@pytest.mark.parametrize("value", [None, 5, [], "x", {}, {"name": 5, "task": [1]}, {"name": None, "task": None}])
def test_a_well_hashed_but_malformed_config_is_told_in_its_row_and_the_others_are_listed(
    tmp_path: Path, part: str, value: object
) -> None:
    good = {"model": {"name": "gpt"}, "data": {"task": "text"}}
    paths = {"good": hashed(tmp_path / "good", good), "bad": hashed(tmp_path / "bad", good | {part: value})}
    first, second = RunProvider(lambda: paths).runs()
    assert (first["model"], first["task"]) == ("gpt", "text")
    if (part, value) != ("data", {}):  # a run without a task is one of text
        assert part in second["error"]
        assert "\n" not in second["error"]


@pytest.mark.parametrize("content", ["[" * 100_000, "5", "null", "\x00", '{"model": 1e999}', "\ud800"])
def test_a_config_of_nonsense_keeps_no_other_run_from_being_listed(tmp_path: Path, content: str) -> None:
    paths = {"bad": hashed(tmp_path / "bad", content)}
    (told,) = RunProvider(lambda: paths).runs()
    assert told["error"]


def test_the_curves_of_runs_are_their_held_out_scores(tmp_path: Path) -> None:
    paths = {"a": trained(tmp_path / "a", 4.0, 2.0), "b": trained(tmp_path / "b", 5.0), "c": made(tmp_path / "c")}
    view = RunProvider(lambda: paths).curves(["a", "b", "c"], {})
    assert view["curves"].lines == {"a": [(1000, 4.0), (2000, 2.0)], "b": [(1000, 5.0)]}
    assert view.panels[-1].text.endswith(": c.")  # pyright: ignore[reportAttributeAccessIssue]
    other = learning_curves({"a": paths["a"]}, x="step", y="bleu", log=True)
    assert other["curves"].lines == {"a": [(10, 2.5), (20, 5.0)]}
    assert other["curves"].x_log
    assert [control.value for control in other.controls] == ["step", "bleu", True]
    assert other.remake is not None
    by_time = other.remake({"x": "seconds"})
    assert by_time["curves"].lines == {"a": [(2.0, 2.5), (4.0, 5.0)]}  # what was not asked for stays
    assert [control.value for control in by_time.controls] == ["seconds", "bleu", True]


def test_curves_of_runs_over_different_data_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {name: trained(tmp_path / name, 4.0) for name in ("a", "b", "c")}
    data = {"a": ("1", "auto"), "b": ("1", "auto"), "c": ("2", "words")}
    told = {
        paths[name]: {"data": {"hash": number, "path": "my.txt", "tokens": tokens}}
        for name, (number, tokens) in data.items()
    }
    monkeypatch.setattr(curves, "read_config", told.__getitem__)
    assert len(learning_curves({name: paths[name] for name in ("a", "b")}).panels) == 2
    note = learning_curves(paths).panels[0]  # above the picture that it is about
    assert "models: a, b on my.txt; c on my.txt in words." in note.text  # pyright: ignore[reportAttributeAccessIssue]


def test_the_table_of_a_long_training_is_of_every_evaluation(tmp_path: Path) -> None:
    losses = [5.0] * 403
    losses[100], losses[101], losses[-1] = 9.0, 0.5, 1.0
    view = learning_curves({"a": trained(tmp_path / "a", *losses)}, x="step")
    assert view["ends"].rows == [["a", 403, 1.0, 0.5, 9.0]]
    line = view["curves"].lines["a"]
    assert len(line) <= CURVE
    assert (line[0], line[-1]) == ((10, 5.0), (4030, 1.0))
    assert curve(tmp_path / "a")[-1]["step"] == 4030  # and in the reports of studies


def test_curves_of_what_was_not_measured_are_refused(tmp_path: Path) -> None:
    paths = {"a": trained(tmp_path / "a", 4.0)}
    with pytest.raises(UsageError, match="y: nothing of the name 'bler' was measured, did you mean 'bleu'"):
        learning_curves(paths, y="bler")
    with pytest.raises(UsageError, match="x: unknown axis"):
        learning_curves(paths, x="watts")
    for score in ("loss", "bleu"):
        assert learning_curves({}, y=score).panels[0].text == "No run is chosen."  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UsageError, match="no run 'b' here"):
        RunProvider(lambda: paths).curves(["b"], {})
