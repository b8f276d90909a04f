"""A step in every number type, with a scaled loss, compiled, and what it does when one of these fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.core import registry
from regard.errors import NumericError, UsageError
from regard.storage import tensors
from regard.training.precision import FIRST_SCALE, STEPS_BEFORE_GROWTH, LossScale, precision_of
from tiny_run import Recorder, Steps, folder_hash, model_of, run, weight_hash

LEARNT = [n for n in registry.names() if registry.entry(n).task == "text" and not registry.entry(n).fitted]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", LEARNT)
def test_every_language_model_learns_in_half_precision(tmp_path, name, precision):
    _, first = run(tmp_path / "first", name, precision=precision, budget="1steps", evaluate_every=1)
    model, last = run(tmp_path / "last", name, precision=precision, budget="30steps", evaluate_every=30, save_every=30)
    assert last.valid_loss < first.valid_loss - 0.1
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def spoilt(passes: set[int], name: str = "gpt") -> torch.nn.Module:
    """A model whose gradient is not finite in some passes, counted from 1."""
    model, count = model_of(name), 0

    def spoil(gradient):
        nonlocal count
        count += 1
        return gradient * float("inf") if count in passes else gradient

    model.head.weight.register_hook(spoil)
    return model


def scale_in(path: Path, step: int) -> float:
    return float(tensors.read(path / "checkpoints" / f"{step:08d}" / "optimiser.safetensors")["loss_scale/scale"])


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_step_that_overflows_is_left_out_and_the_scale_is_halved(tmp_path, optimiser):
    same = {"precision": "float16", "schedule": "constant", "warmup": 0, "evaluate_every": 100, "optimiser": optimiser}
    seen = Recorder()
    model, result = run(tmp_path / "bad", model=spoilt({3}), budget="3steps", save_every=1, display=seen, **same)
    before, _ = run(tmp_path / "good", budget="2steps", save_every=1, **same)
    assert result.step == 3
    assert weight_hash(model) == weight_hash(before)
    assert [scale_in(tmp_path / "bad", step) for step in (2, 3)] == [FIRST_SCALE, FIRST_SCALE / 2]
    moments = [tensors.read(tmp_path / name / "checkpoints" / step / "optimiser.safetensors")
               for name, step in (("bad", "00000003"), ("good", "00000002"))]  # fmt: skip
    for key, value in moments[0].items():
        if key.startswith("optimiser/"):
            assert torch.equal(value, moments[1][key]), key
    assert all(update.loss == update.loss for update in seen.updates)


def test_numbers_that_stay_bad_end_a_run_with_a_scaled_loss(tmp_path):
    with pytest.raises(NumericError, match="the norm of the gradient inf"):
        run(tmp_path / "run", model=spoilt(set(range(5, 200))), precision="float16", budget="200steps",
            evaluate_every=1000, save_every=1000)  # fmt: skip


class Cut(Steps):
    def batch(self, step: int, batch_size: int):
        if step == 9:
            raise InterruptedError
        return super().batch(step, batch_size)


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_a_resume_with_a_scaled_loss_is_bit_for_bit(tmp_path, name):
    whole, _ = run(tmp_path / "whole", model=spoilt({4}, name), precision="float16")
    with pytest.raises(InterruptedError):
        run(tmp_path / "broken", model=spoilt({4}, name), precision="float16", sampler=Cut())
    resumed, _ = run(tmp_path / "broken", name, precision="float16", resume="last")
    assert weight_hash(resumed) == weight_hash(whole)
    assert folder_hash(tmp_path / "broken", 12) == folder_hash(tmp_path / "whole", 12)
    assert [scale_in(tmp_path / kind, 12) for kind in ("broken", "whole")] == [FIRST_SCALE / 2] * 2


def test_the_scale_grows_after_many_good_steps():
    scale = LossScale(torch.device("cpu"))
    for _ in range(STEPS_BEFORE_GROWTH):
        assert not scale.update(torch.tensor(False))
    assert float(scale.scale) == 2 * FIRST_SCALE
    assert not scale.update(torch.tensor(True))
    assert float(scale.scale) == FIRST_SCALE


def test_a_number_type_that_the_device_lacks_is_refused_in_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"^train\.precision: fp8 needs a GPU .* a CPU; say bfloat16$"):
        run(tmp_path / "run", precision="fp8")
    assert not (tmp_path / "run").exists()
    assert precision_of("auto", torch.device("cpu")) == "float32"


COMPILED = """
import sys
from pathlib import Path

import torch
from torch._dynamo.backends.debugging import aot_eager

from tiny_run import Recorder, run

graphs, real = [], torch.compile

def counted(graph, inputs):
    graphs.append(graph)
    return aot_eager(graph, inputs)

torch.compile = lambda step: real(step, backend=counted, fullgraph=True)
torch._dynamo.config.recompile_limit = 1
for precision in ("float32", "bfloat16"):
    seen, folder = Recorder(), Path(sys.argv[1], precision)
    compiled, result = run(folder / "compiled", precision=precision, compile=True, display=seen)
    plain, _ = run(folder / "plain", precision=precision)
    assert result.choice["compile"], seen.notes
    assert seen.starts[0].choice == f"{precision}, compiled"
    assert not seen.notes
    assert len(graphs) == 1, "compiled again after an evaluation, or not at all after another run"
    graphs.clear()
    for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 if precision == "float32" else 0.02)
"""


def test_a_compiled_run_is_the_same_run_in_one_graph_compiled_once_for_each_run(tmp_path):
    """In a process of its own: here shapes are checked at every call, which no compiler looks through."""
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    subprocess.run([sys.executable, "-c", COMPILED, tmp_path], check=True, env={**os.environ, "PYTHONPATH": paths})


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_a_compilation_that_fails_is_told_once_and_changes_no_number(tmp_path, monkeypatch, when):
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, *_):
            raise RuntimeError("no\nC++ compiler")

    def broken(step):
        def call(batch, state):
            if when == "forward":
                raise RuntimeError("no\nC++ compiler")
            loss = step(batch, state)
            return loss._replace(total=Failing.apply(loss.total))

        return call

    plain, _ = run(tmp_path / "plain", "lstm", model=model_of("lstm", dropout=0.3))
    monkeypatch.setattr(torch, "compile", broken)
    seen = Recorder()
    model, result = run(tmp_path / "run", model=model_of("lstm", dropout=0.3), compile=True, display=seen)
    assert weight_hash(model) == weight_hash(plain)
    assert result.choice["failed"] == ["compile"]
    assert not result.choice["compile"]
    assert [note for note in seen.notes if "WARNING" in note] == [
        "WARNING: compiling the step failed (RuntimeError: no C++ compiler); it is made as it reads"
    ]


def test_replacing_a_precision_is_another_run(tmp_path):
    run(tmp_path / "run", budget="3steps")
    with pytest.raises(UsageError, match=r"train\.precision: the run was started with 'auto'"):
        run(tmp_path / "run", resume="last", precision="bfloat16", budget="9steps", override=("budget",))
