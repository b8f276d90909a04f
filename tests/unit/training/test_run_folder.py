from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from regard.errors import CheckpointError, ResourceError, UsageError
from regard.storage import disk, manifest, tensors
from regard.storage.manifest import FileRecord, Manifest
from regard.training import checkpoint, run_folder
from regard.training.checkpoint import Contents
from regard.training.run_folder import claim
from tiny_run import model_of, run


def contents(value: float = 1.0) -> Contents:
    weights = {"w": torch.full((3, 2), value), "n": torch.arange(3), "half": torch.ones(3, dtype=torch.bfloat16)}
    return Contents(weights, {"tied": "{}"}, {"m": torch.full((2,), value), "none": torch.zeros(0)}, {"value": value})


def test_our_files_are_those_of_the_safetensors_library(tmp_path):
    given = {
        "a": torch.randn(3, 4),
        "b": torch.tensor(2.5, dtype=torch.float64),
        "c": torch.arange(5, dtype=torch.int8),
        "d": torch.randn(2, 3).bfloat16(),
        "e": torch.tensor([True, False]),
        "f": torch.zeros(0, 3),
        "g": torch.randn(4, 3).T,
        "h": torch.ones(2, dtype=torch.complex64),
    }
    record = manifest.write_file(tmp_path / "x", tensors.chunks(given, {"note": "ä"}))
    data = (tmp_path / "x").read_bytes()
    assert record == FileRecord(len(data), hashlib.sha256(data).hexdigest())
    for found in (load_file(tmp_path / "x"), tensors.read(tmp_path / "x")):
        assert found.keys() == given.keys()
        assert all(torch.equal(found[name], given[name]) and found[name].dtype == given[name].dtype for name in given)
    assert tensors.forms_in(tmp_path / "x")[1] == {"names": "2", "note": "ä"}


def test_a_tied_weight_is_stored_once_and_is_one_after_loading(tmp_path):
    model = model_of("gpt", tied=True)
    weights = tensors.weights_of(model)
    assert "head.weight" not in weights
    manifest.write_file(tmp_path / "x", tensors.chunks(weights, tensors.weights_metadata(model)))
    other = model_of("gpt", tied=True)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    tensors.load_weights(other, tmp_path / "x")
    assert other.head.weight.data_ptr() == other.embedding.token_to_vector.weight.data_ptr()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


NAMES = ["dan", "fnn", "rnn", "lstm", "gru", "gpt", "backpack", "s4d", "mamba", "mamba2"]


def test_no_architecture_takes_the_weights_of_another(tmp_path):
    models = {name: model_of(name) for name in NAMES}
    for name, model in models.items():
        manifest.write_file(tmp_path / name, tensors.chunks(tensors.weights_of(model), tensors.weights_metadata(model)))
    for name, model in models.items():
        before = {key: value.clone() for key, value in model.state_dict().items()}
        for other in NAMES:
            if other != name:
                with pytest.raises(CheckpointError, match="of another architecture"):
                    tensors.load_weights(model, tmp_path / other)
        assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
        tensors.load_weights(model, tmp_path / name)


def test_a_difference_shows_the_first_five_and_counts_the_rest(tmp_path):
    model = model_of("gpt")
    manifest.write_file(tmp_path / "x", tensors.chunks(tensors.weights_of(model), tensors.weights_metadata(model)))
    with pytest.raises(CheckpointError) as caught:
        tensors.load_weights(model_of("gpt", d_model=32), tmp_path / "x")
    text = str(caught.value)
    assert text.count(" there and ") == 5
    assert "embedding.token_to_vector.weight is F32[11, 16] there and F32[11, 32] here" in text
    assert " more" in text
    assert "\n" not in text
    with pytest.raises(CheckpointError, match="ties"):
        tensors.load_weights(model_of("gpt", tied=True), _untied(tmp_path, model_of("gpt", tied=True)))


def _untied(path: Path, model: torch.nn.Module) -> Path:
    manifest.write_file(path / "untied", tensors.chunks(tensors.weights_of(model), {"tied": "{}"}))
    return path / "untied"


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    path = checkpoint.save(tmp_path, 12, contents())
    assert path.name == "00000012"
    assert sorted(os.listdir(tmp_path)) == ["00000012"]
    assert checkpoint.verify(path).facts == {"step": 12}
    assert checkpoint.read_state(path) == {"value": 1.0}
    assert torch.equal(tensors.read(path / checkpoint.MODEL)["w"], torch.ones(3, 2))


def test_the_newest_is_the_highest_step_whatever_the_age_of_its_files(tmp_path):
    for step in (100000000, 9, 30):
        checkpoint.save(tmp_path, step, contents())
    os.utime(tmp_path / "00000009", (4e9, 4e9))
    assert checkpoint.steps(tmp_path) == [9, 30, 100000000]
    assert checkpoint.newest(tmp_path, fall_back=False)[0] == tmp_path / "100000000"


def test_pruning_keeps_the_last_ones_and_the_best(tmp_path):
    for step in range(1, 7):
        checkpoint.save(tmp_path, step, contents())
    checkpoint.prune(tmp_path, 2, {2})
    assert checkpoint.steps(tmp_path) == [2, 5, 6]


def test_a_damaged_newest_one_is_an_error_unless_falling_back_is_allowed(tmp_path):
    for step in (1, 2, 3):
        checkpoint.save(tmp_path, step, contents(step))
    (tmp_path / "00000003" / "state.json").unlink()
    with pytest.raises(CheckpointError, match=r"00000003/state.json: is missing.*--resume auto"):
        checkpoint.newest(tmp_path, fall_back=False)
    path, problems = checkpoint.newest(tmp_path, fall_back=True)
    assert path == tmp_path / "00000002"
    assert len(problems) == 1
    checkpoint.set_aside_after(tmp_path, 2)
    assert checkpoint.steps(tmp_path) == [1, 2]
    assert (tmp_path / "damaged-00000003-0").is_dir()


def test_a_step_saved_again_replaces_the_folder_there_and_keeps_it_aside(tmp_path):
    checkpoint.save(tmp_path, 3, contents(1.0))
    checkpoint.save(tmp_path, 3, contents(2.0))
    assert checkpoint.read_state(tmp_path / "00000003") == {"value": 2.0}
    assert (tmp_path / "damaged-00000003-0").is_dir()


def test_a_newer_format_is_refused_with_advice(tmp_path, monkeypatch):
    path = checkpoint.save(tmp_path, 1, contents())
    monkeypatch.setattr(manifest, "FORMAT_VERSION", manifest.FORMAT_VERSION + 1)
    newer = checkpoint.save(tmp_path, 2, contents())
    monkeypatch.undo()
    checkpoint.verify(path)
    with pytest.raises(CheckpointError, match=r"written in format 3, this regard reads up to 2; upgrade"):
        checkpoint.verify(newer)


def test_bytes_that_change_on_their_way_to_the_disk_are_found_before_the_checkpoint_gets_its_name(
    tmp_path, monkeypatch
):
    real = run_folder.disk.write

    def careless(descriptor, chunk):
        changed = bytearray(chunk)
        changed[-1] ^= 1
        real(descriptor, memoryview(changed))

    monkeypatch.setattr(run_folder.disk, "write", careless)
    with pytest.raises(CheckpointError, match="SHA-256 is"):
        checkpoint.save(tmp_path, 1, contents())
    assert os.listdir(tmp_path) == []


def test_too_little_space_is_found_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder.disk, "free_bytes", lambda path: 10)
    with pytest.raises(ResourceError, match="GB free"):
        checkpoint.save(tmp_path, 1, contents())
    assert os.listdir(tmp_path) == []


def test_a_run_folder_has_what_it_should_and_all_of_it_verifies(tmp_path):
    run(tmp_path / "run", sample=lambda model: "ä text")
    names = set(os.listdir(tmp_path / "run"))
    assert names == {
        ".lock", "config.json", "tokenizer.json", "model.safetensors", "metrics.jsonl", "samples.txt", "checkpoints",
        "manifest.json",
    }  # fmt: skip
    report = run_folder.verify_run(tmp_path / "run")
    assert set(report.values()) == {"ok"}
    listed = {name for name in report if "/" not in name}
    assert listed == names - {".lock", "checkpoints", "manifest.json"}
    config = run_folder.read_config(tmp_path / "run")
    assert config["model"]["config"]["kind"] == "language_model"
    assert config["data"] == {"hash": "data-1", "tokenizer": "words-1"}
    assert config["train"]["batch_size"] == 4
    assert config["environment"]["threads"] == 1
    (tmp_path / "run" / "samples.txt").write_text("changed")
    assert "samples.txt" in run_folder.verify_run(tmp_path / "run")["samples.txt"]
    run_folder.verified_weights(tmp_path / "run")


def test_a_file_is_old_or_new_at_every_moment_of_its_replacement(tmp_path, monkeypatch):
    """The folder is checked before each operation of a second and a third publication."""
    with claim(tmp_path / "run") as owner:
        owner.publish({"config.json": [b"{}\n"]})
        owner.publish({"model.safetensors": [b"first"]})
        checked = 0

        def checking(operation):
            def wrapped(*arguments):
                nonlocal checked
                checked += 1
                manifest.verify(tmp_path / "run", extras=False)
                return operation(*arguments)

            return wrapped

        for name in run_folder.disk.OPERATIONS:
            monkeypatch.setattr(run_folder.disk, name, checking(getattr(run_folder.disk, name)))
        owner.publish({"model.safetensors": [b"second, longer"]})
        owner.publish({"model.safetensors": [b"third"], "config.json": [b'{"a": 1}\n']})
    assert checked > 20
    monkeypatch.undo()
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == b"third"


def test_a_replacement_cut_short_twice_still_verifies(tmp_path, monkeypatch):
    path = tmp_path / "run"
    with claim(path) as owner:
        owner.publish({"config.json": [b"1"]})
    for _ in range(2):
        with claim(path) as owner:
            monkeypatch.setattr(run_folder.disk, "replace", _only_manifests(run_folder.disk.replace))
            with pytest.raises(ResourceError):
                owner.publish({"config.json": [b"22"]})
            monkeypatch.undo()
        manifest.verify(path, extras=False)
    assert (path / "config.json").read_bytes() == b"1"


def _only_manifests(replace):
    def wrapped(old, new):
        if new.name != "manifest.json":
            raise OSError(5, "Input/output error")
        replace(old, new)

    return wrapped


def test_a_reader_that_meets_a_replacement_looks_again(tmp_path, monkeypatch):
    real = manifest.hash_file
    with claim(tmp_path / "run") as owner:
        owner.publish({"config.json": [b"{}"], "model.safetensors": [b"first"]})
        turns = iter([b"second, longer"])

        def replaced_meanwhile(path):
            for data in turns:
                owner.publish({"model.safetensors": [data]})
            return real(path)

        monkeypatch.setattr(manifest, "hash_file", replaced_meanwhile)
        assert run_folder.verified_weights(tmp_path / "run").read_bytes() == b"second, longer"
        monkeypatch.undo()
    (tmp_path / "run" / "model.safetensors").write_bytes(b"third, longer!")
    with pytest.raises(CheckpointError, match="SHA-256"):
        run_folder.verified_weights(tmp_path / "run")


def test_a_folder_of_other_things_is_not_taken_for_a_run(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"not empty and not a run folder \(it has photo.jpg\)"):
        run(tmp_path)
    assert os.listdir(tmp_path) == ["photo.jpg"]
    with pytest.raises(CheckpointError, match="not a run folder"):
        run_folder.read_config(tmp_path)
    with pytest.raises(CheckpointError, match="no such run folder"):
        run_folder.read_config(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        run(tmp_path / "file")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b", "", ".", "..", "a\nb", "manifest.json", "ä"])
def test_a_manifest_that_names_a_path_is_refused(tmp_path, name):
    (tmp_path / "manifest.json").write_bytes(Manifest({name: FileRecord(1, "0" * 64)}).to_bytes())
    with pytest.raises(CheckpointError, match="names are letters"):
        manifest.verify(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"{", b'{"format_version": "1"}', b"\xff", b"[" * 100000, b'{"format_version": NaN}',
        b'{"format_version": 1}', b'{"format_version": 1, "x": 1e999}',
        b'{"format_version": 1, "files": [], "facts": 3}', b'"' + b"x" * (1 << 25) + b'"',
    ],
)  # fmt: skip
def test_a_text_that_is_no_manifest_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "manifest.json").write_bytes(text)
    with pytest.raises(CheckpointError) as caught:
        manifest.verify(tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_links_are_refused(tmp_path):
    path = checkpoint.save(tmp_path, 1, contents())
    (path / "state.json").rename(tmp_path / "elsewhere.json")
    (path / "state.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(CheckpointError, match=r"state.json: is a link"):
        checkpoint.verify(path)
    other = tmp_path / "00000002"
    other.symlink_to(path)
    with pytest.raises(CheckpointError, match="is a link"):
        checkpoint.verify(other)


@pytest.mark.parametrize("name", ["checkpoints", "track"])
def test_a_link_in_the_place_of_a_folder_of_a_run_leads_no_writer_out_of_it(tmp_path, name):
    run(tmp_path / "run")
    mine = tmp_path / "mine"
    (mine / ".tmp-work").mkdir(parents=True)
    if (tmp_path / "run" / name).exists():
        (tmp_path / "run" / name).rename(tmp_path / "moved")
    (tmp_path / "run" / name).symlink_to(mine)
    with pytest.raises(CheckpointError, match=f"{name}: is a link or no folder"):
        run(tmp_path / "run", resume="auto")
    assert os.listdir(mine) == [".tmp-work"]


def test_a_checkpoint_under_the_name_of_another_step_is_refused(tmp_path):
    path = checkpoint.save(tmp_path, 1, contents())
    path.rename(tmp_path / "00000007")
    with pytest.raises(CheckpointError, match="holds step 1"):
        checkpoint.verify(tmp_path / "00000007")


def test_config_is_plain_json(tmp_path):
    run(tmp_path / "run", about={"model": {"name": "gpt", "size": "tiny"}, "origins": {"train.lr": "flag"}})
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["model"]["name"] == "gpt"
    assert config["origins"] == {"train.lr": "flag"}
    assert config["format_version"] == manifest.FORMAT_VERSION


def test_a_run_refused_before_it_wrote_anything_takes_its_folders_back(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "free_bytes", lambda _: 0)
    with pytest.raises(ResourceError, match="free"):
        run(tmp_path / "runs" / "run")
    assert os.listdir(tmp_path) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(ResourceError, match="free"):
        run(tmp_path / "mine")
    assert (tmp_path / "mine").is_dir(), "made by somebody else"
    monkeypatch.undo()
    with pytest.raises(AttributeError):
        run(tmp_path / "written", sampler=object())
    assert (tmp_path / "written" / "config.json").exists()
