"""The way of a GPU: numbers are read late, bad steps are masked on the device, and a resume still finds its place."""

from __future__ import annotations

import pytest
import torch

from regard.errors import NumericError
from tiny_run import Recorder, model_of, run, weight_hash

pytestmark = pytest.mark.gpu
CUDA = {"device": "cuda"}
EXACT = {"precision": "float32", **CUDA}


def test_a_bad_step_and_all_after_it_leave_the_weights_on_the_device_untouched(tmp_path):
    before, _ = run(tmp_path / "before", budget="12steps", schedule="constant", warmup=0, evaluate_every=100, **EXACT)
    passes = 0
    model = model_of("gpt")

    def spoil(gradient):
        nonlocal passes
        passes += 1
        return gradient * float("nan") if passes == 13 else gradient

    model.head.weight.register_hook(spoil)
    with pytest.raises(NumericError, match=r"step 13: .* samples 48, 49, 50, 51;"):
        run(
            tmp_path / "bad",
            model=model,
            budget="40steps",
            schedule="constant",
            warmup=0,
            evaluate_every=100,
            save_every=100,
            **EXACT,
        )
    assert passes >= 13
    for one, other in zip(before.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_a_resume_on_the_device_is_bit_for_bit(tmp_path, name, optimiser):
    settings = {"optimiser": optimiser, "ema": 0.9, "precision": "bfloat16", **CUDA}
    whole, _ = run(tmp_path / "whole", name, **settings)
    again, _ = run(tmp_path / "again", name, **settings)
    if weight_hash(whole.cpu()) != weight_hash(again.cpu()):
        pytest.skip("this device does not repeat itself")
    # A run whose budget was twelve steps from the start, broken off after nine.
    resumed, _ = _broken_off(tmp_path / "broken", name, settings)
    assert weight_hash(resumed.cpu()) == weight_hash(whole.cpu())


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_compiled_resume_on_the_device_is_bit_for_bit(tmp_path):
    settings = {"compile": True, "precision": "bfloat16", **CUDA}
    whole, result = run(tmp_path / "whole", "gpt", **settings)
    again, _ = run(tmp_path / "again", "gpt", **settings)
    assert result.choice["compile"]
    if weight_hash(whole.cpu()) != weight_hash(again.cpu()):
        pytest.skip("this device does not repeat itself")
    resumed, found = _broken_off(tmp_path / "broken", "gpt", settings)
    if found.choice != result.choice:
        pytest.skip("another kernel was the fastest when the run that was broken off began")
    assert weight_hash(resumed.cpu()) == weight_hash(whole.cpu())


def _broken_off(path, name, settings):
    from tiny_run import Steps

    class Cut:
        def batch(self, step: int, batch_size: int):
            if step == 9:
                raise InterruptedError
            return Steps().batch(step, batch_size)

    with pytest.raises(InterruptedError):
        run(path, name, sampler=Cut(), **settings)
    return run(path, name, resume="last", **settings)


def test_the_device_and_the_host_learn_the_same(tmp_path):
    host, _ = run(tmp_path / "host")
    device, _ = run(tmp_path / "device", precision="float32", **CUDA)
    for one, other in zip(host.parameters(), device.parameters(), strict=True):
        torch.testing.assert_close(one, other.cpu(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "model", "settings"),
    [
        ("gpt", {"dropout": 0.2}, {}),
        ("gpt", {}, {"optimiser": "muon", "ema": 0.9}),
        ("gpt", {"position": "alibi"}, {"precision": "float16"}),
        ("gpt", {}, {"accumulate": 3, "precision": "float32"}),
        ("lstm", {"dropout": 0.2}, {}),
        ("mamba", {}, {"precision": "float32"}),
    ],
)
def test_captured_steps_are_those_that_are_started_one_by_one(tmp_path, name, model, settings):
    made, seen = [], Recorder()
    for graphs in (False, True):
        chosen = {"model": model_of(name, **model), "graphs": graphs, "display": seen, **settings, **CUDA}
        trained, result = run(tmp_path / str(graphs), budget="16steps", **chosen)
        assert result.choice["graphs"] is graphs, seen.notes
        made.append((trained, result.train_loss))
    assert made[0][1] == pytest.approx(made[1][1], rel=1e-4)
    for one, other in zip(made[0][0].parameters(), made[1][0].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_step_that_cannot_be_captured_is_made_as_it_reads_and_told_once(tmp_path):
    class Asking(torch.nn.Identity):
        def forward(self, x):
            assert float(x.detach().float().sum()) < 1e30  # waits for the device
            return x

    made, seen = [], Recorder()
    for graphs in (False, True):
        model = model_of("gpt", dropout=0.2)
        model.norm = torch.nn.Sequential(model.norm, Asking())
        trained, result = run(tmp_path / str(graphs), model=model, graphs=graphs, display=seen, **CUDA)
        made.append(trained)
    assert result.choice["failed"] == ["graphs"]
    assert len([note for note in seen.notes if "capturing the step failed" in note]) == 1
    for one, other in zip(made[0].parameters(), made[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_compiled_and_captured_run_learns_what_the_plain_one_does(tmp_path):
    plain, _ = run(tmp_path / "plain", graphs=False, compile=False, precision="float32", **CUDA)
    fast, result = run(tmp_path / "fast", graphs=True, compile=True, precision="float32", **CUDA)
    assert (result.choice["compile"], result.choice["graphs"], result.choice["failed"]) == (True, True, [])
    for one, other in zip(plain.parameters(), fast.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-3)


def test_batches_ahead_end_with_their_run(tmp_path):
    import threading

    before = threading.active_count()
    run(tmp_path / "run", **CUDA)
    assert threading.active_count() <= before


def test_graphs_that_cannot_be_are_told_why(tmp_path):
    model, seen = model_of("gpt"), Recorder()
    model.head.register_forward_hook(lambda *_: None)
    _, result = run(tmp_path / "run", model=model, graphs=True, budget="6steps", display=seen, **CUDA)
    assert (result.choice["graphs"], result.choice["failed"]) == (False, ["graphs"])
    assert any("train.graphs: hooks are registered on the model" in note for note in seen.notes)


def test_fp8_learns_what_bfloat16_does(tmp_path):
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("no 8-bit units")
    size = {"d_model": 512, "n_layers": 2, "n_heads": 8}
    losses = []
    for precision in ("bfloat16", "fp8"):
        model = model_of("gpt", **size)
        trained, result = run(tmp_path / precision, model=model, precision=precision, budget="60steps", **CUDA)
        assert all(
            type(part) is not torch.nn.Linear or part.weight.dtype == torch.float32 for part in trained.modules()
        )
        losses.append(result.valid_loss)
    assert losses[1] == pytest.approx(losses[0], rel=0.1, abs=0.05)
