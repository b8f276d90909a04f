from __future__ import annotations

import json
import math
import os
import signal
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.core.device import device_named
from regard.core.model import logits_of
from regard.data.batch import evaluation_batches
from regard.data.shard import TokenShard
from regard.errors import NumericError, ResourceError, Stopped, UsageError
from regard.storage import tensors
from regard.training import held_out as evaluation
from regard.training import metrics
from regard.training.counters import Counters
from regard.training.display import Lines
from regard.training.flops import flops_per_target
from regard.training.loop import train
from regard.training.losses import TrainingStep, model_loss
from regard.training.optimiser import Optimiser
from regard.training.parallel.ranks import ALONE
from regard.training.problem import Metric, TrainingProblem
from regard.training.resume import Resume
from tiny_run import LENGTH, ROWS, SETTINGS, Recorder, Steps, held_out, model_of, run, task_of, weight_hash


def test_a_run_is_the_script_one_would_write_by_hand(tmp_path):
    """Three steps of AdamW with clipping and warm-up, without the loop."""
    settings = replace(SETTINGS, budget="3steps", warmup=2, schedule="constant", clip=0.1, evaluate_every=None)
    model, result = run(tmp_path / "run", **{k: getattr(settings, k) for k in ("budget", "warmup", "schedule", "clip")})
    other = model_of("gpt")
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in other.parameters() if p.dim() == 2], "weight_decay": settings.weight_decay},
            {"params": [p for p in other.parameters() if p.dim() != 2], "weight_decay": 0.0},
        ],
        betas=settings.betas,
    )
    for step, rate in enumerate([0.005, 0.01, 0.01]):
        batch = Steps().batch(step, ROWS)
        logits = logits_of(other, batch.tokens)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(other.parameters(), 0.1)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    assert result.step == 3
    assert result.tokens == 3 * ROWS * LENGTH
    for one, expected in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, expected, rtol=1e-5, atol=1e-6)


def test_a_tiny_model_learns_the_stream(tmp_path):
    _, result = run(tmp_path / "run", budget="150steps", evaluate_every=50, save_every=100)
    assert result.best_loss < 0.6 * math.log(11)
    assert result.train_loss < 1.0


class Uneven:
    """The rows of `Steps`, of which some have few targets that count."""

    def __init__(self, batch_size_of_whole: int = 0) -> None:
        self.whole = batch_size_of_whole

    def batch(self, step: int, batch_size: int):
        if self.whole:
            big = self.batch_of_whole(step // (self.whole // batch_size))
            part = slice((step % (self.whole // batch_size)) * batch_size, None)
            rows = slice(part.start, part.start + batch_size)
            return replace(big, tokens=big.tokens[rows], targets=big.targets[rows], lengths=big.lengths[rows])
        return self.batch_of_whole(step)

    def batch_of_whole(self, step: int):
        batch = Steps().batch(step, 8)
        targets = batch.targets.clone()
        targets[:4, 2:] = -100
        return replace(batch, targets=targets)


def test_accumulated_batches_of_unequal_counts_equal_one_big_batch(tmp_path):
    big, _ = run(tmp_path / "big", sampler=Uneven(), batch_size=8, budget="4steps")
    small, _ = run(tmp_path / "small", sampler=Uneven(8), batch_size=2, accumulate=4, budget="4steps")
    for one, other in zip(big.parameters(), small.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("budget", "steps"), [("5steps", 5), (f"{5 * ROWS * LENGTH}tokens", 5), (f"{5 * ROWS * LENGTH - 1}tokens", 5)]
)
def test_a_budget_ends_the_run(tmp_path, budget, steps):
    _, result = run(tmp_path / "run", budget=budget)
    assert (result.step, result.reason) == (steps, "budget")


def test_a_budget_in_flops_counts_what_a_step_takes(tmp_path):
    each = flops_per_target(model_of("gpt"), Steps().batch(0, ROWS), model_loss) * ROWS * LENGTH
    _, result = run(tmp_path / "run", budget=f"{4.5 * each}flops")
    assert result.step == 5


class Clock:
    """Time that passes a tenth of a second at every look."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


def test_a_budget_in_time_follows_the_clock_that_cannot_jump(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "monotonic", Clock())
    monkeypatch.setattr(time, "time", lambda: pytest.fail("the wall clock was asked"))
    seen = Recorder()
    _, result = run(tmp_path / "run", budget="30s", evaluate_every=None, save_every=None, display=seen)
    assert result.reason == "budget"
    assert 30 <= result.seconds < 40
    rates = [update.rate for update in seen.updates]
    assert rates[-1] == pytest.approx(0.1 * SETTINGS.rate, rel=0.2)
    assert max(rates) > 0.9 * SETTINGS.rate
    assert all(
        later.progress >= earlier.progress for earlier, later in zip(seen.updates, seen.updates[1:], strict=False)
    )
    assert 4 <= len(seen.evaluations) <= 21


def test_evaluations_are_planned_to_cost_a_twentieth():
    count, tokens = evaluation.plan(1_000_000, 10_000_000)
    assert count * tokens / 3 <= 0.05 * 1_000_000
    assert count * tokens / 3 > 0.04 * 1_000_000
    assert evaluation.plan(1e9, 5_000) == (20, 5_000)
    assert evaluation.plan(100, 50_000)[0] == 4


def test_the_kept_weights_are_the_best_and_the_checkpoint_has_the_last(tmp_path):
    """With a rate that ruins what was learnt, the best is not the last."""
    seen = Recorder()
    model, result = run(
        tmp_path / "run", budget="30steps", lr=2.0, schedule="constant", warmup=30, evaluate_every=3, display=seen
    )
    losses = {one.step: one.loss for one in seen.evaluations}
    assert result.best_step == min(losses, key=losses.__getitem__) != 30
    assert result.best_loss == min(losses.values())
    best = model_of("gpt")
    tensors.load_weights(best, tmp_path / "run" / "model.safetensors")
    assert _held_out_loss(best) == pytest.approx(result.best_loss, rel=1e-5)
    assert _held_out_loss(model) == pytest.approx(result.valid_loss, rel=1e-5)


def _held_out_loss(model: torch.nn.Module) -> float:
    model.eval()
    with torch.no_grad():
        losses = [
            torch.nn.functional.cross_entropy(logits_of(model, b.tokens).flatten(0, 1), b.targets.flatten())
            for b in held_out()
        ]
    return float(torch.stack(losses).mean())


def test_what_is_kept_of_an_averaged_run_is_the_average(tmp_path):
    model, result = run(tmp_path / "run", budget="8steps", ema=0.9, evaluate_every=8)
    kept = model_of("gpt")
    tensors.load_weights(kept, tmp_path / "run" / "model.safetensors")
    assert not torch.equal(kept.head.weight, model.head.weight)
    assert _held_out_loss(kept) == pytest.approx(result.best_loss, rel=1e-5)


def test_patience_ends_a_run_that_no_longer_improves(tmp_path):
    _, result = run(tmp_path / "run", budget="400steps", lr=1e-30, evaluate_every=2, patience=3)
    assert result.reason == "patience"
    assert result.step == 8


@pytest.mark.parametrize("share", [1.0, 0.6, 0.3, 0.1, 1e-6])
def test_a_part_of_the_held_out_documents_has_their_mean_length(share):
    """Documents of 1 to 99 tokens, and as the loss of a token the length of its document."""
    sizes = np.arange(7 * 99) * 31 % 99 + 1
    shard = TokenShard(np.ones(sizes.sum(), np.uint16), np.cumsum(sizes) - sizes, 0, 0)
    batches = partial(evaluation_batches, shard, length=128, batch_size=4, kind="documents")
    task = TrainingProblem(
        Steps(), batches, shard.tokens, lambda _, batch, state: (batch.lengths.square().sum(), None, state)
    )
    session = SimpleNamespace(
        task=task, counters=Counters(plan_tokens=max(1, int(share * shard.tokens))), device=torch.device("cpu"),
        precision=nullcontext, training_step=TrainingStep(torch.nn.Module(), task.objective), ranks=ALONE,
    )  # fmt: skip
    mean, tokens = evaluation.held_out_loss(session)
    assert mean == pytest.approx((sizes**2).sum() / sizes.sum(), rel=1e-9 if share == 1 else 0.1)
    assert tokens == pytest.approx(max(share * shard.tokens, 4 * 66), abs=0 if share == 1 else 4 * 66)


def test_without_held_out_data_the_last_weights_are_kept(tmp_path):
    model = model_of("gpt")
    result = train(model, TrainingProblem(Steps()), replace(SETTINGS, budget="4steps"), tmp_path / "run")
    assert (result.valid_loss, result.best_loss) == (None, None)
    kept = model_of("gpt")
    tensors.load_weights(kept, tmp_path / "run" / "model.safetensors")
    assert torch.equal(kept.head.weight, model.head.weight)


def test_samples_are_written_without_disturbing_the_run(tmp_path):
    def noisy(model: torch.nn.Module) -> str:
        assert not model.training
        return f"text {torch.rand(3).sum():.3f} \ud800"

    seen = Recorder()
    plain, _ = run(tmp_path / "plain", "gpt", model=model_of("gpt", dropout=0.2))
    model, _ = run(tmp_path / "run", model=model_of("gpt", dropout=0.2), sample=noisy, sample_every=2, display=seen)
    assert [one.sample is not None for one in seen.evaluations] == [True, False, True]
    assert (tmp_path / "run" / "samples.txt").read_text().count("--- step") == 2
    assert torch.equal(plain.head.weight, model.head.weight)


def test_the_log_has_a_line_for_every_reading_and_every_evaluation(tmp_path):
    run(tmp_path / "run")
    records = list(metrics.read(tmp_path / "run" / "metrics.jsonl"))
    assert [r["step"] for r in records if "valid_loss" in r] == [4, 8, 12]
    trained = [r for r in records if "loss" in r]
    told = {"step", "seconds", "tokens", "loss", "gradient_norm", "rate", "tokens_per_second", "padding"}
    assert told == trained[0].keys()
    assert trained[-1]["tokens"] == 12 * ROWS * LENGTH


class Ragged(Steps):
    """Every second batch has rows of which half is padding."""

    def batch(self, step, batch_size):
        batch = super().batch(step, batch_size)
        return batch if step % 2 else replace(batch, lengths=batch.lengths // 2)


def test_the_share_of_padding_is_told_over_the_whole_run(tmp_path):
    _, result = run(tmp_path / "run", sampler=Ragged())
    assert result.padding == pytest.approx(0.25)
    assert list(metrics.read(tmp_path / "run" / "metrics.jsonl"))[-2]["padding"] == pytest.approx(0.25)
    assert run(tmp_path / "full")[1].padding == 0.0
    # 12 steps of which none is made again: what was counted is in the checkpoint.
    _, again = run(tmp_path / "run", sampler=Steps(), resume="last", budget="24steps", override=("budget",))
    assert again.padding == pytest.approx(0.125)


def test_a_log_that_cannot_be_written_warns_once_and_the_run_goes_on(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(metrics.disk, "append", full)
    seen = Recorder()
    _, result = run(tmp_path / "run", display=seen)
    assert result.step == 12
    assert len([note for note in seen.notes if "metrics are not being written" in note]) == 1


def test_a_torn_last_line_of_the_log_is_left_out(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n[3]\n{"step": 2}\n{"step": 3, "lo')
    assert list(metrics.read(tmp_path / "log")) == [{"step": 1}, {"step": 2}]
    assert b"".join(metrics.up_to(tmp_path / "log", 1)) == b'{"step": 1}\n'
    assert list(metrics.read(tmp_path / "absent")) == []


def test_the_display_is_told_once_of_the_start_and_of_the_end_also_after_a_failure(tmp_path):
    seen = Recorder()
    run(tmp_path / "run", display=seen)
    assert [one.step for one in seen.starts] == [0]
    assert seen.saves == [3, 6, 9, 12]
    assert [result.step for result in seen.results] == [12]
    failed = Recorder()
    with pytest.raises(UsageError, match="already holds a run"):
        run(tmp_path / "run", display=failed)
    assert failed.results == [None]


def test_plain_lines_tell_of_every_kind_of_event(tmp_path, capsys):
    run(tmp_path / "run", display=Lines(every=0.0), sample=lambda model: "words\n\n" + "more " * 90)
    text = capsys.readouterr().err
    assert max(len(line) for line in text.splitlines() if line.startswith("  | ")) <= 104
    for expected in (
        "starts: ",
        "held-out loss",
        "best so far",
        "  | words\n  | more more",
        "saved ",
        "12 steps",
        "tokens/s",
    ):
        assert expected in text


def test_bfloat16_trains_with_float32_weights(tmp_path):
    model, result = run(tmp_path / "run", "lstm", precision="bfloat16", budget="4steps")
    assert result.step == 4
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    exact, _ = run(tmp_path / "exact", "lstm", budget="4steps")
    assert not torch.equal(model.head.weight, exact.head.weight)
    torch.testing.assert_close(model.head.weight, exact.head.weight, rtol=0.2, atol=0.05)


def test_a_save_that_fails_is_an_error_or_a_warning_as_asked(tmp_path, monkeypatch):
    from regard.storage import disk
    from regard.training import checkpoint

    real = disk.make_folder

    def full(path):
        if path.name.startswith(".tmp-6"):
            raise OSError(28, "No space left on device")
        real(path)

    monkeypatch.setattr(disk, "make_folder", full)
    with pytest.raises(ResourceError, match="No space left on device; free some space"):
        run(tmp_path / "stop")
    assert checkpoint.steps(tmp_path / "stop" / "checkpoints") == [3]
    seen = Recorder()
    _, result = run(tmp_path / "warn", on_save_error="warn", display=seen)
    assert result.step == 12
    assert seen.saves == [3, 9, 12]
    assert any("WARNING: not saved at step 6" in note for note in seen.notes)


def test_out_of_memory_is_one_line_that_names_the_settings(tmp_path):
    class Huge:
        def batch(self, step: int, batch_size: int):
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:128] DefaultCPUAllocator: can't allocate memory: 9 bytes"
            )

    with pytest.raises(ResourceError, match=r"train\.batch_size=4 and train\.length=8"):
        run(tmp_path / "run", sampler=Huge())


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match=r"train\.device: cuda:99"):
        device_named("cuda:99")


def test_a_gradient_that_is_not_finite_on_a_device_is_marked_and_never_applied(tmp_path):
    """The way of a GPU, walked on the CPU: marked at the step, found at the reading, weights as before the step."""
    from regard.training import report
    from regard.training.session import Pending
    from regard.training.step import refuse_or_skip

    model = model_of("gpt")
    optimiser = Optimiser(model, SETTINGS)
    bad = torch.tensor(False)
    for step in range(4):
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, float("inf") if step == 2 else 0.5)
        loss, norm = torch.tensor(1.0), torch.tensor(float("inf") if step == 2 else 1.0)
        session = type("S", (), {"device": torch.device("meta"), "is_bad": bad, "loss_scale": None})()
        bad = refuse_or_skip(session, Pending(step + 1, loss, norm, 1, [7]))
        if step == 2:
            before = [parameter.detach().clone() for parameter in model.parameters()]
        optimiser.step(0.01, bad)
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))
    with pytest.raises(NumericError, match=r"step 3: .*samples 7;"):
        report.require_finite(Pending(3, loss, norm, 1, [7]), 1.0, float("inf"))


def test_config_says_nothing_of_the_wall_clock(tmp_path):
    run(tmp_path / "one", budget="2steps")
    run(tmp_path / "two", budget="2steps")
    assert (tmp_path / "one" / "config.json").read_bytes() == (tmp_path / "two" / "config.json").read_bytes()
    assert "time" not in json.loads((tmp_path / "one" / "config.json").read_text())


def test_the_state_of_a_recurrent_model_is_carried_and_begins_anew_when_told(tmp_path):
    model = model_of("lstm")
    given = []

    def spy(_, inputs):
        given.append([t.clone() for t in inputs[1].tensors() if t.is_floating_point()])

    model.register_forward_pre_hook(spy)
    train(model, task_of(model), replace(SETTINGS, budget="9steps", evaluate_every=100), tmp_path / "run")
    is_zero = [all(not t.any() for t in state) for state in given[:9]]
    assert is_zero == [True, *[False] * 6, True, False]


def test_the_last_evaluation_is_part_of_the_time_left(tmp_path):
    seen, without = Recorder(), Recorder()
    _, result = run(tmp_path / "run", display=seen)
    assert seen.updates[-1].step == result.step
    assert seen.updates[-1].remaining == pytest.approx(seen.evaluations[-2].seconds)
    train(
        model_of(), TrainingProblem(Steps()), replace(SETTINGS, budget="4steps"), tmp_path / "without", display=without
    )
    assert without.updates[-1].remaining == 0


def test_before_the_first_evaluation_its_time_is_told_by_the_speed_of_steps(tmp_path):
    seen = Recorder()
    run(tmp_path / "run", display=seen, evaluate_every=100, budget="4steps")
    last = seen.updates[-1]
    assert last.remaining == pytest.approx(3 * ROWS * LENGTH / last.tokens_per_second / 3)


def test_a_signal_during_a_slow_score_ends_it_at_once_and_the_step_is_evaluated_again(tmp_path):
    went_on, weights = [], []

    def measure(model: torch.nn.Module) -> float:
        weights.append(weight_hash(model))
        if len(weights) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
            went_on.append("went on")
        return 1.0

    def again(resume: str):
        model = model_of()
        task = replace(task_of(model), metric=Metric("score", measure))
        return train(model, task, replace(SETTINGS, ema=0.5), tmp_path / "run", resume=Resume(resume))

    with pytest.raises(Stopped, match="stopped by SIGTERM at step 4, with a checkpoint"):
        again("no")
    assert not went_on
    assert list(metrics.read(tmp_path / "run" / "metrics.jsonl"))[-1].get("valid_loss") is None
    assert again("last").step == 12
    assert weights[0] == weights[1], "of step 4, evaluated twice"


class Hungry(Steps):
    """Batches that do not fit once `step` is reached."""

    def __init__(self, step: int) -> None:
        super().__init__()
        object.__setattr__(self, "last", step)

    def batch(self, step: int, batch_size: int):
        if step >= self.last:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes")
        return super().batch(step, batch_size)


def test_out_of_memory_leaves_a_place_in_which_its_advice_can_be_followed(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(ResourceError, match=r"train.batch_size=4 .*; lower one of them") as told:
        run(path, sampler=Hungry(1), save_every=3)
    assert "--out" not in str(told.value)
    assert not path.exists()
    path.mkdir()
    with pytest.raises(ResourceError):
        run(path, sampler=Hungry(1))
    _, result = run(path, batch_size=2)
    assert result.step == 12


def test_out_of_memory_after_a_checkpoint_says_how_to_go_on_and_that_other_sizes_need_another_folder(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(ResourceError, match=r"continue with --resume where there is more; or .* another --out"):
        run(path, sampler=Hungry(5))
    assert run(path, resume="last")[1].step == 12
