"""How steps are made: chosen once, kept for a resume, told where it cannot be as somebody has asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import CheckpointError
from regard.storage import manifest
from regard.training import execution, loop
from regard.training.precision import has
from tiny_run import Recorder, Steps, model_of, run

CPU = torch.device("cpu")
PLAIN = {"precision": "float32", "compile": False, "graphs": False, "attention": [], "failed": []}
LONGER = {"budget": "12steps", "resume": "last"}


def rewritten(folder: Path, **parts: Any) -> None:
    """Other parts in the state of the checkpoint of step 6, sealed as if a run had written them."""
    folder = folder / "checkpoints" / "00000006"
    state = json.loads((folder / "state.json").read_text()) | parts
    sealed = manifest.read(folder)
    record = manifest.write_file(folder / "new.json", [manifest.canonical(state)])
    (folder / "new.json").replace(folder / "state.json")
    (folder / "manifest.json").unlink()
    manifest.seal(folder, {**sealed.files, "state.json": record}, sealed.facts)


def broken(step):
    def call(batch, state):
        raise RuntimeError("no C++ compiler")

    return call


class Cut(Steps):
    def batch(self, step: int, batch_size: int):
        if step == 9:
            raise InterruptedError
        return super().batch(step, batch_size)


def test_what_was_chosen_is_kept_for_the_resume(tmp_path, monkeypatch):
    """A resume with less of the budget left, or on a machine with a compiler, still makes its steps as before."""
    monkeypatch.setattr(torch, "compile", lambda step: step)
    chosen = execution.choose
    monkeypatch.setattr(execution, "choose", lambda session: replace(chosen(session), compile=True))
    with pytest.raises(InterruptedError):
        run(tmp_path / "run", sampler=Cut())
    monkeypatch.setattr(execution, "choose", lambda session: pytest.fail("chosen again"))
    _, result = run(tmp_path / "run", resume="last")
    assert result.choice == PLAIN | {"compile": True}


@pytest.mark.parametrize(
    "value", [3, {"precision": "float7"}, {"attention": ["SLOW"]}, {"compile": "yes"}, {"speed": 1}, {"failed": 1}]
)
def test_a_choice_that_is_none_is_refused_by_its_file(tmp_path, value):
    run(tmp_path / "run", budget="6steps")
    rewritten(tmp_path / "run", choice=value)
    with pytest.raises(CheckpointError, match=r"state\.json: choice"):
        run(tmp_path / "run", resume="last", budget="9steps", override=("budget",))


def test_on_a_cpu_nothing_is_compiled_unless_somebody_asks(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda step: pytest.fail("compiled"))
    with pytest.raises(InterruptedError):
        run(tmp_path / "run", budget="10h", sampler=Cut())


def test_graphs_that_cannot_be_are_told_and_a_resume_chooses_nothing_anew(tmp_path, monkeypatch):
    seen = Recorder()
    _, result = run(tmp_path / "run", graphs=True, budget="6steps", display=seen)
    assert result.choice == PLAIN | {"failed": ["graphs"]}
    assert seen.notes == [
        "WARNING: train.graphs: a step is captured on a GPU only, and this is a CPU; the step is made uncaptured"
    ]
    monkeypatch.setattr(execution, "choose", lambda session: pytest.fail("chosen again"))
    for steps, named in (("9steps", ("budget",)), ("12steps", ("budget", "graphs"))):
        again = Recorder()
        _, result = run(tmp_path / "run", graphs=True, budget=steps, resume="last", override=named, display=again)
        assert result.choice == PLAIN | {"failed": ["graphs"]}
        assert len(again.notes) == 1
        tried = "graphs" in named
        assert again.notes[0].startswith("WARNING: train.graphs: a step is" if tried else "train.graphs: has failed")


class Ragged(Steps):
    def batch(self, step: int, batch_size: int):
        whole = super().batch(step, batch_size)
        return replace(whole, lengths=whole.lengths - torch.arange(batch_size) % 2)


@pytest.mark.parametrize(
    ("name", "hooked", "sampler", "settings", "told"),
    [
        ("gpt", True, Steps(), {}, "hooks are registered on the model"),
        ("gpt", False, Ragged(), {}, "batches are of several shapes, or have rows that are not full"),
        ("lstm", False, Steps(), {"accumulate": 2}, "a state is carried between the 2 batches of a step"),
        ("gpt", False, Steps(), {"accumulate": 2}, None),
    ],
)
def test_why_a_step_is_not_captured_on_a_gpu(tmp_path, monkeypatch, name, hooked, sampler, settings, told):
    reasons = []

    def asked(session):
        session.device = torch.device("cuda")
        reasons.append(execution._why_not_captured(session))
        session.device = CPU
        return execution.Choice()

    monkeypatch.setattr(execution, "choose", asked)
    model = model_of(name)
    if hooked:
        model.head.register_forward_hook(lambda *_: None)
    run(tmp_path / "run", model=model, budget="1steps", sampler=sampler, **settings)
    assert reasons[0] == told or reasons[0].startswith(told)


def test_a_compilation_that_failed_is_tried_again_where_it_is_named_and_else_told(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", broken)
    _, result = run(tmp_path / "run", compile=True, budget="6steps")
    assert result.choice["failed"] == ["compile"]
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda step: compiled.append(step) or step)
    seen, same = Recorder(), {"compile": True, "resume": "last"}
    _, result = run(tmp_path / "run", budget="9steps", override=("budget",), display=seen, **same)
    assert (result.choice["failed"], compiled) == (["compile"], [])
    assert seen.notes == [
        "train.compile: has failed before and is not tried again; --set train.compile=true tries it"
    ]  # fmt: skip
    _, result = run(tmp_path / "run", budget="12steps", override=("budget", "compile"), **same)
    assert result.choice == PLAIN | {"compile": True}
    assert len(compiled) == 1


def test_what_is_said_on_a_resume_changes_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda step: step)
    run(tmp_path / "run", compile=True, budget="6steps")
    monkeypatch.setattr(execution, "choose", lambda session: pytest.fail("chosen again"))
    named = {"compile": False, "override": ("budget", "compile")}
    _, result = run(tmp_path / "run", budget="12steps", resume="last", **named)
    assert result.choice == PLAIN


def as_of_a_gpu(folder: Path) -> None:
    choice = {"precision": "bfloat16", "compile": True, "graphs": True, "attention": ["CUDNN_ATTENTION"], "failed": []}
    rewritten(folder, choice=choice, environment={"device": "cuda"})


def test_a_run_that_goes_on_on_another_device_keeps_its_precision(tmp_path):
    run(tmp_path / "run", budget="6steps")
    as_of_a_gpu(tmp_path / "run")
    seen = Recorder()
    _, result = run(tmp_path / "run", **LONGER, override=("budget",), display=seen)
    assert result.choice == PLAIN | {"precision": "bfloat16"}
    assert seen.starts[0].choice == "bfloat16"
    assert not any("WARNING" in note for note in seen.notes)


def test_a_precision_that_the_other_device_lacks_is_told(tmp_path, monkeypatch):
    run(tmp_path / "run", budget="6steps")
    as_of_a_gpu(tmp_path / "run")
    monkeypatch.setattr(execution, "has", lambda precision, device: precision == "float32")
    seen = Recorder()
    _, result = run(tmp_path / "run", **LONGER, override=("budget",), display=seen)
    assert result.choice == PLAIN
    assert [note for note in seen.notes if "WARNING" in note] == [
        "WARNING: continued in float32: the run began in bfloat16, which this device lacks; its results will differ"
    ]


@pytest.mark.parametrize(("capability", "found"), [((7, 5), ""), ((8, 0), "bfloat16"), ((9, 0), "bfloat16 fp8")])
def test_which_precisions_a_device_has(monkeypatch, capability, found):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    on_gpu = [name for name in ("bfloat16", "fp8") if has(name, torch.device("cuda"))]
    assert on_gpu == found.split()
    assert has("float16", torch.device("cuda"))
    assert [name for name in ("float32", "bfloat16", "float16", "fp8") if not has(name, CPU)] == ["fp8"]


@pytest.mark.parametrize(("width", "precision"), [(16, "bfloat16"), (512, "fp8")])
def test_fp8_without_a_map_for_it_is_told_as_what_it_is(tmp_path, monkeypatch, width, precision):
    for module in (execution, loop):
        monkeypatch.setattr(module, "precision_of", lambda name, device: name)
    seen = Recorder()
    model = model_of("gpt", d_model=width)
    _, result = run(tmp_path / "run", model=model, precision="fp8", budget="1steps", display=seen)
    assert result.choice == PLAIN | {"precision": precision, "failed": ["fp8"] if precision == "bfloat16" else []}
    assert seen.starts[0].choice == precision
    told = [note for note in seen.notes if "fp8 is for linear maps of at least 262,144 weights" in note]
    assert len(told) == (precision == "bfloat16")
