"""Damaged files are refused: flipped bits, cut ends, missing and extra files, and files that were never ours."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from pathlib import Path

import pytest

from regard.errors import CheckpointError
from regard.storage import manifest, tensors
from regard.training import checkpoint, run_folder
from tiny_run import model_of, run

FLIPS = 20


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "run"
    run(path, "lstm", budget="6steps", save_every=6, sample=lambda model: "text")
    return path


def files_of(path: Path) -> list[Path]:
    return [file for file in sorted(path.rglob("*")) if file.is_file() and file.name != ".lock"]


def verify_all(path: Path) -> None:
    manifest.verify(path, extras=False)
    checkpoint.verify(path / "checkpoints" / "00000006")


def test_one_flipped_bit_in_any_file_is_refused(finished):
    verify_all(finished)
    chance = random.Random(7)
    tried = 0
    for file in files_of(finished):
        data = file.read_bytes()
        for _ in range(FLIPS):
            place, bit = chance.randrange(len(data)), chance.randrange(8)
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            file.write_bytes(flipped)
            with pytest.raises(CheckpointError) as caught:
                verify_all(finished)
            assert file.name in str(caught.value)
            tried += 1
        file.write_bytes(data)
    verify_all(finished)
    assert tried == FLIPS * 10


def test_every_single_bit_of_a_manifest_counts(finished):
    file = finished / "checkpoints" / "00000006" / "manifest.json"
    data = file.read_bytes()
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            file.write_bytes(flipped)
            with pytest.raises(CheckpointError):
                manifest.read(file.parent)
    file.write_bytes(data)


def test_truncated_missing_and_extra_files_are_refused_by_name(finished, tmp_path):
    for file in files_of(finished):
        for kind in ("truncated", "empty", "missing", "longer"):
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
            shutil.copytree(finished, tmp_path / "copy")
            victim = tmp_path / "copy" / file.relative_to(finished)
            data = victim.read_bytes()
            victim.unlink()
            if kind != "missing":
                victim.write_bytes({"truncated": data[:-1], "empty": b"", "longer": data + b"x"}[kind])
            with pytest.raises(CheckpointError, match=victim.name.replace(".", r"\.")):
                verify_all(tmp_path / "copy")
    extra = finished / "checkpoints" / "00000006" / "modeling_x.py"
    extra.write_text("raise SystemExit('executed')")
    with pytest.raises(CheckpointError, match=r"modeling_x\.py: not in .*manifest\.json; remove it"):
        checkpoint.verify(extra.parent)
    extra.unlink()


def test_the_message_gives_both_hashes(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    file = tmp_path / "run" / "model.safetensors"
    expected = manifest.hash_file(file).sha256[:16]
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    actual = manifest.hash_file(file).sha256[:16]
    with pytest.raises(CheckpointError, match=f"model.safetensors: SHA-256 is {actual}.*expects {expected}"):
        run_folder.verified_weights(tmp_path / "run")


def load(path: Path) -> None:
    run_folder.read_config(path)
    tensors.load_weights(model_of("lstm"), run_folder.verified_weights(path))


class Bomb:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def test_a_hostile_pickle_in_any_file_runs_nothing(finished, tmp_path):
    """Also with a manifest that vouches for it, as an attacker would write it."""
    marker = tmp_path / "executed"
    bomb = pickle.dumps(Bomb(marker))
    for name in ("model.safetensors", "optimiser.safetensors", "state.json", "manifest.json"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(finished, tmp_path / "run")
        victim = tmp_path / "run" / "checkpoints" / "00000006" / name
        victim.write_bytes(bomb)
        if name != "manifest.json":
            records = {
                n: manifest.hash_file(victim.parent / n)
                for n in (checkpoint.MODEL, checkpoint.OPTIMISER, checkpoint.STATE)
            }
            (victim.parent / "manifest.json").write_bytes(manifest.Manifest(records, {"step": 6}).to_bytes())
        with pytest.raises(CheckpointError):
            run(tmp_path / "run", "lstm", budget="6steps", save_every=6, resume="last")
    for name in ("model.safetensors", "config.json"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(finished, tmp_path / "run")
        (tmp_path / "run" / name).write_bytes(bomb)
        records = dict(manifest.read(tmp_path / "run").files) | {name: manifest.hash_file(tmp_path / "run" / name)}
        (tmp_path / "run" / "manifest.json").write_bytes(manifest.Manifest(records).to_bytes())
        with pytest.raises(CheckpointError):
            load(tmp_path / "run")
    assert not marker.exists()
    pickle.loads(bomb)
    assert marker.exists()


HEADERS = [
    b"",
    b"\x00" * 7,
    (2**63).to_bytes(8, "little") + b"{}",
    (200 << 20).to_bytes(8, "little") + b"{",
    (2).to_bytes(8, "little") + b"[]",
    (5).to_bytes(8, "little") + b"\xff\xfe\xfd{}",
]
ENTRIES = [
    {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 80]}},
    {"w": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 8]}},
    {"w": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}},
    {"w": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}},
    {"w": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}},
    {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
    },
]


def test_hostile_tensor_files_are_refused_in_one_line(tmp_path):
    texts = [json.dumps(entry).encode() for entry in ENTRIES]
    hostile = [*HEADERS, *(len(text).to_bytes(8, "little") + text + b"\0" * 8 for text in texts)]
    for number, data in enumerate(hostile):
        file = tmp_path / str(number)
        file.write_bytes(data)
        for reader in (tensors.forms_in, tensors.read):
            with pytest.raises(CheckpointError, match="not a readable safetensors file"):
                reader(file)


def test_a_file_larger_than_the_model_is_refused_before_its_numbers_are_read(tmp_path, monkeypatch):
    model, big = model_of("lstm"), model_of("lstm", d_model=64)
    manifest.write_file(tmp_path / "big", tensors.chunks(tensors.weights_of(big), tensors.weights_metadata(big)))
    monkeypatch.setattr(tensors, "read", lambda path: pytest.fail("the numbers were read"))
    with pytest.raises(CheckpointError, match="of another architecture"):
        tensors.load_weights(model, tmp_path / "big")
