"""A run that was interrupted ends with the very weights of one that was not."""

from __future__ import annotations

import json
import platform
import shutil
from dataclasses import replace

import pytest
import torch

from regard.errors import CheckpointError, UsageError
from regard.storage import tensors
from regard.training import checkpoint, metrics, run_folder
from tiny_run import Recorder, folder_hash, model_of, run, weight_hash

CASES = {
    "gpt": {},
    "dropout": {"dropout": 0.3},
    "accumulation": {"accumulate": 3},
    "average": {"ema": 0.9},
    "muon": {"optimiser": "muon"},
    "lstm": {"name": "lstm"},
    "lstm, all of it": {"name": "lstm", "dropout": 0.2, "accumulate": 2, "ema": 0.8, "optimiser": "muon"},
    "bfloat16": {"name": "lstm", "precision": "bfloat16"},
    "mamba": {"name": "mamba"},
}


def begin(case: dict):
    settings = dict(case)
    name = settings.pop("name", "gpt")
    model_settings = {"dropout": settings.pop("dropout")} if "dropout" in settings else {}
    return lambda: model_of(name, **model_settings), settings


def interrupt_at(path, build, settings, steps: int, resume: str) -> None:
    """Run to `steps` of twelve: the schedule is that of the whole run, as after a kill."""

    class Enough(Exception):
        pass

    class Cut:
        def __init__(self) -> None:
            from tiny_run import Steps

            self.inner = Steps()

        def batch(self, step: int, batch_size: int):
            if step >= steps * settings.get("accumulate", 1):
                raise Enough
            return self.inner.batch(step, batch_size)

    with pytest.raises(Enough):
        run(path, model=build(), sampler=Cut(), resume=resume, **settings)


@pytest.mark.parametrize("case", CASES)
def test_resumes_end_with_the_same_weights_bit_for_bit(tmp_path, case):
    """Killed mid-interval, killed again before any save, and killed once more: three resumes in one run."""
    build, settings = begin(CASES[case])
    whole, expected = run(tmp_path / "whole", model=build(), **settings)

    path = tmp_path / "cut"
    interrupt_at(path, build, settings, 5, "no")
    interrupt_at(path, build, settings, 5, "last")
    interrupt_at(path, build, settings, 10, "last")
    model, result = run(path, model=build(), resume="last", **settings)
    assert weight_hash(model) == weight_hash(whole)
    assert folder_hash(path, 12) == folder_hash(tmp_path / "whole", 12)
    assert (path / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()
    names = ("step", "tokens", "valid_loss", "best_loss", "best_step", "reason")
    assert [getattr(result, n) for n in names] == [getattr(expected, n) for n in names]
    mine, theirs = (tensors.read(p / "checkpoints/00000012/optimiser.safetensors") for p in (path, tmp_path / "whole"))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine if not name.startswith("generator/"))


def test_leaving_any_part_of_a_checkpoint_out_would_show(tmp_path):
    """The equality above can fail: without the moments or the carried state other weights come out."""
    build, settings = begin(CASES["lstm, all of it"])
    whole, _ = run(tmp_path / "whole", model=build(), **settings)
    interrupt_at(tmp_path / "cut", build, settings, 5, "no")
    for part in ("optimiser/", "carried/", "average/"):
        path = tmp_path / part.strip("/")
        shutil.copytree(tmp_path / "cut", path)
        saved = path / "checkpoints" / "00000003"
        values = tensors.read(saved / "optimiser.safetensors")
        changed = {
            name: value + 0.1 if name.startswith(part) and value.is_floating_point() else value
            for name, value in values.items()
        }
        contents = checkpoint.Contents(
            tensors.read(saved / "model.safetensors"),
            tensors.weights_metadata(build()),
            changed,
            checkpoint.read_state(saved),
        )
        shutil.rmtree(saved)
        checkpoint.save(path / "checkpoints", 3, contents)
        model, _ = run(path, model=build(), resume="last", **settings)
        same = weight_hash(model) == weight_hash(whole)
        kept = (path / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()
        assert not (same and kept), part


def test_a_finished_run_is_not_trained_further(tmp_path):
    model, first = run(tmp_path / "run")
    again, second = run(tmp_path / "run", resume="auto")
    assert (second.step, second.tokens, second.best_loss) == (first.step, first.tokens, first.best_loss)
    assert weight_hash(model) == weight_hash(again)
    assert set(run_folder.verify_run(tmp_path / "run").values()) == {"ok"}


def test_a_longer_budget_goes_on_when_it_is_meant(tmp_path):
    run(tmp_path / "run")
    with pytest.raises(UsageError, match=r"train\.budget: .*--set train\.budget=VALUE"):
        run(tmp_path / "run", resume="last", budget="20steps")
    _, result = run(tmp_path / "run", resume="last", budget="20steps", override=("budget",))
    assert result.step == 20
    assert run_folder.read_config(tmp_path / "run")["train"]["budget"] == "20steps"
    steps = [record["step"] for record in metrics.read(tmp_path / "run" / "metrics.jsonl") if "valid_loss" in record]
    assert steps == sorted(set(steps))


def test_the_clock_goes_on_where_it_stood(tmp_path):
    run(tmp_path / "run", budget="6steps")
    state = checkpoint.read_state(tmp_path / "run" / "checkpoints" / "00000006")
    seen = Recorder()
    _, result = run(tmp_path / "run", resume="last", budget="9steps", override=("budget",), display=seen)
    assert result.seconds > state["counters"]["seconds"] > 0
    assert seen.starts[0].step == 6


def test_resume_modes(tmp_path):
    with pytest.raises(CheckpointError, match="holds no run to continue"):
        run(tmp_path / "run", resume="last")
    run(tmp_path / "run", resume="auto", budget="3steps")
    with pytest.raises(UsageError, match="already holds a run; continue it with --resume"):
        run(tmp_path / "run", budget="3steps")


def test_auto_goes_back_past_a_damaged_checkpoint_with_a_warning_and_last_does_not(tmp_path):
    whole, _ = run(tmp_path / "whole")
    build, settings = begin({})
    path = tmp_path / "cut"
    interrupt_at(path, build, settings, 8, "no")
    victim = path / "checkpoints" / "00000006" / "model.safetensors"
    data = bytearray(victim.read_bytes())
    data[-3] ^= 4
    victim.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"00000006/model.safetensors: SHA-256 is .* expects"):
        run(path, resume="last")
    seen = Recorder()
    model, _ = run(path, resume="auto", display=seen)
    assert any("WARNING" in note and "00000006/model.safetensors" in note for note in seen.notes)
    assert weight_hash(model) == weight_hash(whole)
    assert (path / "checkpoints" / "damaged-00000006-0").is_dir()


def test_a_run_killed_before_its_first_save_starts_over(tmp_path):
    whole, _ = run(tmp_path / "whole")
    build, settings = begin({})
    interrupt_at(tmp_path / "cut", build, settings, 2, "no")
    model, _ = run(tmp_path / "cut", resume="last")
    assert weight_hash(model) == weight_hash(whole)


def test_another_model_or_other_data_is_refused_with_the_difference(tmp_path):
    run(tmp_path / "run", budget="3steps")
    with pytest.raises(CheckpointError, match=r"model\.config\.embedding\.d_model is 16 there and 32 here"):
        run(tmp_path / "run", model=model_of("gpt", d_model=32), resume="last", budget="3steps")
    path = tmp_path / "run"
    config = json.loads((path / "config.json").read_text())
    config["data"]["tokenizer"] = "words-2"
    with run_folder.claim(path) as owner:
        owner.publish({"config.json": run_folder.json_file(config)})
    with pytest.raises(CheckpointError, match=r"data\.tokenizer is 'words-2' there and 'words-1' here"):
        run(path, resume="last", budget="3steps")
    with pytest.raises(CheckpointError, match="another run"):
        run(path, resume="auto", budget="3steps")


def test_moments_of_another_shape_or_rule_are_refused_before_anything_is_touched(tmp_path):
    build, settings = begin({})
    interrupt_at(tmp_path / "run", build, settings, 5, "no")
    saved = tmp_path / "run" / "checkpoints" / "00000003"
    values = tensors.read(saved / "optimiser.safetensors")
    name = "optimiser/head.weight/second"
    for wrong, message in (
        (values[name][:, :3], r"head.weight/second is F32\[11, 3\] there"),
        (None, "is missing"),
    ):
        changed = {key: value for key, value in values.items() if key != name} | (
            {} if wrong is None else {name: wrong}
        )
        metadata, state = tensors.weights_metadata(build()), checkpoint.read_state(saved)
        contents = checkpoint.Contents(tensors.read(saved / "model.safetensors"), metadata, changed, state)
        shutil.rmtree(saved)
        checkpoint.save(tmp_path / "run" / "checkpoints", 3, contents)
        model = build()
        with pytest.raises(CheckpointError, match=message):
            run(tmp_path / "run", model=model, resume="last")
        assert weight_hash(model) == weight_hash(build())


GENERATORS = {
    "python": (None, torch.zeros(3, dtype=torch.int64), torch.zeros(0)),
    "python_gauss": (None,),
    "numpy": (None, torch.tensor([0] * 624 + [10**6, 0]), torch.tensor([-1] * 626), torch.zeros(2, dtype=torch.int64)),
    "numpy_gauss": (None, torch.zeros(2)),
    "torch": (None, torch.zeros(3, dtype=torch.uint8), torch.zeros(5056)),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_states_of_generators_that_are_none_are_refused_before_anything_is_touched(tmp_path, name):
    build, settings = begin({})
    interrupt_at(tmp_path / "run", build, settings, 5, "no")
    saved = tmp_path / "run" / "checkpoints" / "00000003"
    values = tensors.read(saved / "optimiser.safetensors")
    metadata, state = tensors.weights_metadata(build()), checkpoint.read_state(saved)
    weights = tensors.read(saved / "model.safetensors")
    for wrong in GENERATORS[name]:
        changed = {key: value for key, value in values.items() if key != f"generator/{name}"}
        changed |= {} if wrong is None else {f"generator/{name}": wrong}
        shutil.rmtree(saved)
        checkpoint.save(tmp_path / "run" / "checkpoints", 3, checkpoint.Contents(weights, metadata, changed, state))
        model = build()
        with pytest.raises(CheckpointError, match=r"00000003/optimiser\.safetensors: "):
            run(tmp_path / "run", model=model, resume="last")
        assert weight_hash(model) == weight_hash(build())


def test_another_environment_warns(tmp_path, monkeypatch):
    build, settings = begin({})
    interrupt_at(tmp_path / "run", build, settings, 5, "no")
    monkeypatch.setattr(platform, "python_version", lambda: "9.9")
    seen = Recorder()
    run(tmp_path / "run", resume="last", display=seen)
    assert any("python 9.9 instead of" in note for note in seen.notes)


def test_the_log_of_steps_that_are_made_again_is_dropped(tmp_path):
    build, settings = begin({})
    interrupt_at(tmp_path / "run", build, settings, 5, "no")
    with (tmp_path / "run" / "metrics.jsonl").open("ab") as log:
        log.write(b'{"step": 5, "loss": 99.0}\n{"step": 5, "torn')
    run(tmp_path / "run", resume="last")
    assert 99.0 not in [record.get("loss") for record in metrics.read(tmp_path / "run" / "metrics.jsonl")]


def test_fields_of_settings_are_compared_on_resume(tmp_path):
    run(tmp_path / "run", budget="3steps")
    with pytest.raises(UsageError, match=r"train\.seed: the run was started with 0 and is continued with 1"):
        run(tmp_path / "run", resume="last", budget="3steps", seed=1)
    run(tmp_path / "run", resume="last", budget="4steps", keep=5, override=("budget",))
    assert run_folder.read_config(tmp_path / "run")["train"]["keep"] == 5


def test_replace_of_settings_checks_too():
    with pytest.raises(UsageError):
        replace(run.__globals__["SETTINGS"], lr=-1.0)
