"""Which folders are runs, what the list says of them, and their curves."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from regard.errors import CheckpointError
from regard.serving import curves
from regard.serving.provider import RunProvider
from regard.serving.shelf import MOST, facts, found_runs
from regard.storage import manifest
from regard.storage.lock import only_writer
from regard.storage.manifest import Manifest
from regard.training.follow import BEGINNING, Place
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
        assert provider.progress({name: BEGINNING})[name]["points"]


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


def test_what_came_to_a_training_is_told_once_and_goes_on_from_there(tmp_path: Path) -> None:
    paths = {"a": trained(tmp_path / "a", 4.0, 2.0), "c": made(tmp_path / "c")}
    provider = RunProvider(lambda: paths)
    first = provider.progress({"a": BEGINNING, "c": BEGINNING})
    assert [(point["step"], point["valid_loss"]) for point in first["a"]["points"]] == [(10, 4.0), (20, 2.0)]
    assert first["c"]["points"] == []  # a run without metrics
    assert not first["a"]["is_training"]
    with (paths["a"] / "metrics.jsonl").open("a") as file:
        file.write('{"step": 30, "valid_loss": 1.5}\n{"step": 40, "val')
    place = Place(first["a"]["offset"], first["a"]["mark"])
    came = provider.progress({"a": place})["a"]
    assert [point["step"] for point in came["points"]] == [30]
    assert came["points"][0]["tokens"] is None  # the page knows those of the step before
    assert not came["is_new"]
    assert not came["has_more"]


def test_a_run_that_has_gone_or_is_none_of_ours_says_so_and_the_others_are_told(tmp_path: Path) -> None:
    paths = {name: trained(tmp_path / name, 4.0) for name in ("a", "b", "c")}
    shutil.rmtree(paths["a"])
    (paths["b"] / "metrics.jsonl").write_text('{"loss": 3}\n')
    found = RunProvider(lambda: paths).progress(dict.fromkeys(("a", "b", "c", "never"), BEGINNING))
    assert found["a"] == found["never"] == {"gone": True}
    assert "says of no step what it measured" in found["b"]["error"]
    assert len(found["c"]["points"]) == 1


def test_one_question_reads_so_many_bytes_and_the_rest_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {name: trained(tmp_path / name, *[4.0] * 40) for name in ("a", "b")}
    size = (paths["a"] / "metrics.jsonl").stat().st_size
    monkeypatch.setattr(curves, "MOST_AT_ONCE", size)
    found = curves.progress(paths, {"a": BEGINNING, "b": BEGINNING})
    assert len(found["a"]["points"]) == 40
    assert found["b"] == {"offset": 0, "mark": "", "points": [], "has_more": True}


def test_a_training_that_is_under_way_is_told_by_its_lock(tmp_path: Path) -> None:
    run = trained(tmp_path / "a", 4.0)
    with only_writer(run):
        # The lock is that of another open file, as that of another process would be.
        assert curves.progress({"a": run}, {"a": BEGINNING})["a"]["is_training"]
    assert not curves.progress({"a": run}, {"a": BEGINNING})["a"]["is_training"]


def test_settings_can_be_searched_by_name_the_chosen_ones_before_those_of_parts(tmp_path: Path) -> None:
    config = {
        "model": {
            "name": "gpt",
            "size": "small",
            "settings": {"n_layers": 3, "tied": True},
            "config": {"kind": "language", "d_model": 64, "stack": {"d_model": 99, "layers": [{"n_heads": 4}]}},
        },
        "data": {"task": "text", "path": "my.txt", "hash": "abc"},
        "train": {"lr": 3e-4, "budget": "500steps"},
    }
    told = facts("runs/x", hashed(tmp_path / "x", config))
    settings = told["settings"]
    wanted = {"model.n_layers": 3, "model.tied": True, "model.d_model": 64, "model.n_heads": 4, "train.lr": 3e-4}
    assert wanted.items() <= settings.items()
    assert told["budget"] == {"kind": "steps", "amount": 500.0}
    assert told["data"] == ["abc", "my.txt"]
    assert not told["has_curves"]
    json.dumps(told, allow_nan=False)


def test_the_curve_of_a_report_is_thinned_with_its_ends(tmp_path: Path) -> None:
    found = curve(trained(tmp_path / "a", *[5.0] * 403))
    assert len(found) <= CURVE
    assert (found[0]["step"], found[-1]["step"]) == (10, 4030)
