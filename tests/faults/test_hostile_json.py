"""A file that is well hashed and malformed is refused by name, with the exit code of a checkpoint: never a bug of ours.

Every place of every JSON file of a run folder gets hostile values, in turn, under a manifest that vouches for them.
"""

from __future__ import annotations

import json
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hostile
import pytest
from calling import call_here
from hostile import KEYS, VALUES, places, renamed, replaced, vouch, write

from regard.errors import CheckpointError, RegardError
from regard.run.run import load
from regard.run.summary import run_summary
from regard.serving import shelf
from regard.storage import manifest
from regard.training import checkpoint, counters

TINY = ("--size", "tiny", "--device", "cpu", "--quiet", "--set", "train.batch_size=2", "--set", "train.length=16")
RUNS = {
    "gpt": "world:stories?train=20&valid=4",
    "ngram": "world:stories?train=20&valid=4",
    "bert": "world:stories?train=20&valid=4",
    "transformer": "world:translation?train=20&valid=4",
    "classifier": "world:reviews?train=40&valid=8",
    "tagger": "world:tags?train=40&valid=8",
    "captioner": "world:shapes?train=20&valid=4",
    "forecaster": "world:electricity",
}
SHARED = ("data", "train", "origins", "environment", "regard", "format_version")  # alike in all runs: walked once
EVERY = 64  # of the mutations, one is also shown and gone on with
FILES = ("config.json", "codec.json", "tokenizer.json")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every task, of two steps."""
    home = tmp_path_factory.mktemp("hostile")
    for name, data in RUNS.items():
        outcome = call_here("train", data, "--model", name, "--budget", "2steps", "--out", str(home / name), *TINY)
        assert outcome.code == 0, outcome.err
    (home / "t.txt").write_text("the dog saw the cat .\n")
    return home


def use(folder: Path, name: str, text: str) -> None:
    """What people do with a run they were given."""
    run_summary(folder)
    run: Any = load(folder, device="cpu")
    if name in ("gpt", "ngram"):
        run.generate("the", max_tokens=2)
        run.evaluate(text)
    elif name == "transformer":
        run.answers(["the dog"], max_tokens=2)
    elif name in ("bert", "classifier", "tagger"):
        run.answers(["the [MASK] sat"])


def go_on(folder: Path, copy: Path) -> str:
    """What is wrong with how a folder is shown or a copy of it goes on with training: "" where nothing is.

    Other words may well name data that is not there: any code but that of a bug will do.
    """
    told = []
    shutil.copytree(folder, copy)
    for command in (("show", str(folder), "--origin"), ("train", "--resume", "--out", str(copy), "--quiet")):
        outcome = call_here(*command)
        if outcome.code == 1 or "bug of regard" in outcome.err:
            told.append(f"{command[0]}: {outcome.err.strip()[:200]}")
    shutil.rmtree(copy)
    return "; ".join(told)


def outcome_of(act: Callable[[], None], folder: Path, where: str) -> str | None:
    """None, or what is wrong with how a folder was refused."""
    try:
        with warnings.catch_warnings(action="ignore"):
            act()
    except RegardError as error:
        is_told = error.exit_code == 4 and str(folder) in str(error)
        return None if is_told else f"{where}: {type(error).__name__}: {str(error)[:200]}"
    except Exception as error:
        return f"{where}: {type(error).__name__}: {str(error)[:200]}"
    return None


def mutations(sound: Any, place: tuple[Any, ...], number: int) -> Iterator[tuple[str, Any]]:
    """Another value at a place and, at every third, another key.

    Neighbours get other ones, so that every place meets one and every one many places: all at all take minutes.
    """
    label = list(VALUES)[number % len(VALUES)]
    yield f"= {label}", replaced(sound, place, VALUES[label])
    if number % 3 == 0 and place and isinstance(place[-1], str):
        key = KEYS[number % len(KEYS)]
        yield f"as {key[:20]!r}", renamed(sound, place, key)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", RUNS)
def test_any_value_of_any_file_of_a_run_is_taken_or_refused_by_the_name_of_its_file(runs, tmp_path, name):
    folder, wrong, tried = tmp_path / name, [], 0
    shutil.copytree(runs / name, folder)
    for file in FILES:
        if not (folder / file).exists():
            continue
        sound = json.loads((folder / file).read_bytes())
        for number, place in enumerate(places(sound)):
            if name != "gpt" and place[:1] in [(key,) for key in SHARED]:
                continue
            for label, content in mutations(sound, place, number + len(name)):
                write(folder, file, content)
                where = f"{file}: {'.'.join(map(str, place))} {label}"
                wrong.append(outcome_of(lambda: use(folder, name, str(runs / "t.txt")), folder, where))
                if tried % EVERY == 0:
                    told = go_on(folder, tmp_path / "copy")
                    wrong.append(f"{where}: {told}" if told else None)
                tried += 1
        write(folder, file, sound)
    use(folder, name, str(runs / "t.txt"))
    assert [one for one in wrong if one] == []
    assert tried > 15


PUBLISHED = {
    "model": (None, 5, []),
    "data": (None, 5, []),
    "train": (None, 5, []),
    "data.task": ([1], "pay:x"),
    "data.path": (-1,),
    "data.valid": (None,),
    "train.length": ("x", 0, 10**18),
    "model.config.init_std": (-1, "x"),
    "model.config.embedding.d_model": (0, -1, 10**18, 1 << 24),
    "model.config.embedding.vocab_size": (0, 10**18, 1 << 32),
    "model.config.stack.layers": ([], None, [{"kind": "stack"}] * 2000),
    "model.config.kind": ("pay:x", {}, None),
}


@pytest.mark.parametrize("place", PUBLISHED)
def test_what_was_once_called_a_bug_of_ours_is_refused_with_file_and_key(runs, tmp_path, place):
    folder = tmp_path / "gpt"
    shutil.copytree(runs / "gpt", folder)
    sound = json.loads((folder / "config.json").read_bytes())
    for value in PUBLISHED[place]:
        write(folder, "config.json", replaced(sound, tuple(place.split(".")), value))
        with pytest.raises(CheckpointError) as caught:
            load(folder, device="cpu")
        message = str(caught.value)
        assert str(folder) in message
        assert len(message) < 2000
        assert place.rpartition(".")[2] in message or "architecture" in message or "model.config" in message
        told = shelf.facts("gpt", folder)
        assert "error" in told or place.startswith("model.config")
        assert call_here("generate", str(folder), "the").code == 4


def test_hostile_metadata_of_weights_is_refused(runs, tmp_path):
    folder = tmp_path / "gpt"
    shutil.copytree(runs / "gpt", folder)
    header, numbers = hostile.header_of((folder / "model.safetensors").read_bytes())
    for tied in ("[" * 100_000, "null", "7", '{"a": {}}', "x" * 100_000):
        changed = header | {"__metadata__": {"format": "pt", "tied": tied}}
        (folder / "model.safetensors").write_bytes(hostile.with_header(changed, numbers))
        vouch(folder, "model.safetensors")
        with pytest.raises(CheckpointError, match=r"model\.safetensors") as caught:
            load(folder, device="cpu")
        assert len(str(caught.value)) < 1000


ARRAYS = (
    "levels.1.keys",
    "levels.2.keys",
    "levels.1.alpha.codes",
    "levels.0.gamma.codes",
    "levels.1.alpha.table",
    "root",
)


@pytest.mark.parametrize("part", ARRAYS)
def test_counts_that_lead_out_of_their_tables_are_refused(runs, tmp_path, part):
    folder = tmp_path / "ngram"
    shutil.copytree(runs / "ngram", folder)
    file = folder / "model.safetensors"
    header, numbers = hostile.header_of(file.read_bytes())
    entry = header[f"table.{part}"]
    start, stop = entry["data_offsets"]
    width = {"I64": 8, "U8": 1, "F64": 8, "I16": 2}[entry["dtype"]]
    for value in (b"\xff" * width, struct.pack("<q", 1 << 60)[:width] if width == 8 else b"\xfe" * width):
        for at in (start, stop - width):
            file.write_bytes(hostile.with_header(header, numbers[:at] + value + numbers[at + width :]))
            vouch(folder, file.name)
            told = outcome_of(lambda: use(folder, "ngram", str(runs / "t.txt")), folder, part)
            assert told is None
    file.write_bytes(hostile.with_header(header, numbers[:start] + b"\xff" * (stop - start) + numbers[stop:]))
    vouch(folder, file.name)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: not the file of an n-gram model"):
        load(folder, device="cpu")


def test_any_value_of_the_state_of_a_checkpoint_is_taken_or_refused_by_name(runs, tmp_path):
    folder = tmp_path / "gpt"
    shutil.copytree(runs / "gpt", folder)
    point = folder / "checkpoints" / "00000002"
    sound = json.loads((point / "state.json").read_bytes())
    for place in places(sound):
        for label, value in VALUES.items():
            write(point, "state.json", replaced(sound, place, value))
            told = outcome_of(
                lambda: counters.counters_of(checkpoint.read_state(point), point), folder, f"{place} {label}"
            )
            assert told is None
    write(point, "state.json", sound | {"counters": []})
    outcome = call_here("train", "--resume", "--out", str(folder), "--quiet")
    assert outcome.code == 4, outcome.err
    assert "state.json: counters" in outcome.err


def test_any_value_of_a_manifest_is_refused_by_name(runs, tmp_path):
    folder = tmp_path / "gpt"
    shutil.copytree(runs / "gpt", folder)
    sound = manifest.read(folder)
    plain = json.loads(sound.to_bytes())
    for number, place in enumerate(places(plain)):
        changed = replaced(plain, place, list(VALUES.values())[number % len(VALUES)])
        if isinstance(changed, dict):
            changed.pop("digest", None)
            changed["digest"] = manifest._digest(changed)
        (folder / manifest.NAME).write_bytes(manifest.canonical(changed))
        told = outcome_of(lambda: use(folder, "gpt", str(runs / "t.txt")), folder, str(place))
        assert told is None


HOSTILE_METRICS = [b"[" * 100_000, b'{"step": "x", "loss": 1}', b'{"step": 1, "valid_loss": []}', b'{"step": null}']


def test_metrics_that_are_no_numbers_are_refused_by_file_and_line(runs, tmp_path):
    folder = tmp_path / "gpt"
    shutil.copytree(runs / "gpt", folder)
    for line in HOSTILE_METRICS:
        (folder / "metrics.jsonl").write_bytes(b'{"step": 1, "loss": 2.0}\n' + line + b"\n")
        outcome = call_here("show", str(folder))
        assert outcome.code in (0, 4), outcome.err
        assert outcome.code == 0 or "metrics.jsonl, line 2" in outcome.err


def test_a_comparison_that_is_none_is_refused_by_name(tmp_path):
    (tmp_path / "t.txt").write_text("".join(f"the dog {i} saw the cat {i % 7} .\n" for i in range(300)))
    command = ("compare", str(tmp_path / "t.txt"), "--models", "ngram", "--budget", "2steps", "--quiet")
    command += ("--out", str(tmp_path / "c"), "--set", "data.documents=line")
    assert call_here(*command).code == 0
    sound = json.loads((tmp_path / "c" / "comparison.json").read_bytes())
    for value in ([], {}, None, 7, sound | {"parameters": "x"}, sound | {"protocol": []}, sound | {"parameters": -1}):
        (tmp_path / "c" / "comparison.json").write_text(json.dumps(value))
        outcome = call_here(*command)
        assert outcome.code == 4, outcome.err
        assert "comparison.json" in outcome.err
    (tmp_path / "c" / "comparison.json").write_text(json.dumps(sound))
    for name in ("report.json", "report.html", "report.md"):
        (tmp_path / "c" / name).unlink()
        (tmp_path / "c" / name).mkdir()
        outcome = call_here(*command)
        assert outcome.code == 4, outcome.err
        assert f"{name}: is a folder" in outcome.err
        (tmp_path / "c" / name).rmdir()
        (tmp_path / "c" / name).touch()
    for value in ([], {"ngram": 7}, {"ngram": {}}):
        (tmp_path / "c" / "state.json").write_text(json.dumps(value))
        outcome = call_here(*command)
        assert outcome.code == 4, outcome.err
        assert "state.json" in outcome.err


@pytest.mark.parametrize("key", ["zzz.a", "", "a" * 1000])
def test_an_origin_of_no_setting_is_refused_by_name(runs, tmp_path, key):
    folder = tmp_path / "gpt"
    shutil.copytree(runs / "gpt", folder)
    sound = json.loads((folder / "config.json").read_bytes())
    write(folder, "config.json", replaced(sound, ("origins",), {key: "flag"}))
    outcome = call_here("show", str(folder), "--origin")
    assert outcome.code == 4, outcome.err
    assert "config.json: origins." in outcome.err


def test_parts_of_a_model_that_do_not_go_together_are_refused_by_name(runs, tmp_path):
    """Also where the file of weights agrees with them, or says nothing of them."""
    for name, place, value in (
        ("transformer", ("decoder", "embedding", "position", "d_model"), 5),
        ("transformer", ("decoder", "embedding", "position", "d_model"), -1),
        ("gpt", ("stack", "d_model"), 5),
    ):
        folder = tmp_path / name
        shutil.copytree(runs / name, folder, dirs_exist_ok=True)
        sound = json.loads((folder / "config.json").read_bytes())
        write(folder, "config.json", replaced(sound, ("model", "config", *place), value))
        with pytest.raises(CheckpointError, match=r"config\.json: model\.config"):
            load(folder, device="cpu")
