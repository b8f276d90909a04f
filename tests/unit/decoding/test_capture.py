"""What is tried before it is recorded leaves no trace, and what cannot be recorded is run as it is. Without a GPU."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
import torch
from torch import Tensor

from regard.core.registry import build
from regard.decoding.capture import Captured, tried
from regard.decoding.engine import Engine
from regard.decoding.generate import Limits
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.kernels import operators
from regard.layers import position

PROMPTS = [[1, 2, 3], [4], [5] * 9, [6, 7]]
SETTINGS = [GREEDY, Sampling(), Sampling(top_p=0.9), Sampling(min_p=0.1)]


class Replayed:
    """Stands for a graph: the step again."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.replay = step


def drawn(name: str, recorded: Callable[..., object] | None, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], str]:
    torch.manual_seed(0)
    model = build(name, vocab_size=11, size="tiny").double()
    with Engine(model, 2, ahead=4) as engine, monkeypatch.context() as patched:
        if recorded is not None:
            patched.setattr(Captured, "_recorded", recorded)
            engine.slots.captured.told = "graphs"
        for row, (prompt, settings) in enumerate(zip(PROMPTS, SETTINGS, strict=True)):
            engine.submit(prompt, Limits(30, eos_id=0), settings, row=row)
        found: list[int] = []
        while engine.busy:
            found += [token for one in engine.step() for token in (one.request, one.token)]
        return found, engine.told


@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba", "mamba2", "backpack"])
def test_trial_runs_leave_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[int] = []

    def recorded(self: Captured, step: Callable[[], None], books: Sequence[Tensor], alive: Tensor) -> Replayed:
        for _ in range(3):
            tried(step, books, alive)
        kinds.append(len(self.graphs))
        return Replayed(step)

    plain, _ = drawn(name, None, monkeypatch)
    assert drawn(name, recorded, monkeypatch) == (plain, "graphs")
    assert kinds


def test_what_cannot_be_recorded_is_run_as_it_is_said_once_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Captured, step: Callable[[], None], books: Sequence[Tensor], alive: Tensor) -> Replayed:
        tried(step, books, alive)
        raise RuntimeError("a step waits for the device\nand more")

    monkeypatch.setattr(operators, "_unmade", Counter())
    plain, _ = drawn("gpt", None, monkeypatch)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = drawn("gpt", refused, monkeypatch)
    assert operators.fallbacks() == {"graphs": 1}
    assert found == (plain, "no graphs: a step waits for the device")
    assert [str(one.message) for one in said] == [
        "a step of this model is run without CUDA graphs, slower: a step waits for the device"
    ]


def test_steps_of_two_threads_are_recorded_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are recorded on one stream: what a second one launched there would become part of the first one's graph."""
    both, met = threading.Barrier(2), []

    def recorded(self: Captured, step: Callable[[], None], books: Sequence[Tensor], alive: Tensor) -> Replayed:
        with suppress(threading.BrokenBarrierError):
            met.append(both.wait(timeout=0.5))
        return Replayed(step)

    monkeypatch.setattr(Captured, "_recorded", recorded)
    steps: list[str] = []

    def engine(name: str) -> None:
        captured = Captured(torch.device("cpu"), True)
        captured.told = "graphs"
        captured.run("greedy", lambda: steps.append(name), [], torch.ones(1))

    threads = [threading.Thread(target=engine, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(steps) == ["a", "b"]
    assert not met


@pytest.mark.gpu
def test_a_step_that_is_no_graph_reads_the_books_as_they_were() -> None:
    """They are put back on another stream, which may be late."""
    alive = torch.ones(4, dtype=torch.long, device="cuda")
    seen: list[Tensor] = []

    def step() -> None:
        seen.append(alive.clone())
        torch.cuda._sleep(200_000_000)
        alive.sum().item()

    captured = Captured(torch.device("cuda"), True)
    with pytest.warns(UserWarning, match="without CUDA graphs"):
        captured.run("greedy", step, (alive,), alive)
    assert [one.tolist() for one in seen] == [[0] * 4, [0] * 4, [1] * 4]


def test_a_cpu_has_no_graphs() -> None:
    assert Captured(torch.device("cpu"), True).told == "no graphs: the device is cpu"
    assert Captured(torch.device("cpu"), False).told == "no graphs: not asked for"


def test_a_step_reads_no_angles_that_are_kept_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of it would go on reading them where they were when they are thrown out."""
    model = build("gpt", vocab_size=11, size="tiny", position="rotary")
    with Engine(model, 1, ahead=2) as engine:
        engine.submit([1, 2, 3], Limits(6), GREEDY)
        found = engine.step()
        monkeypatch.setattr(position, "_turns", None)
        while engine.busy:
            found += engine.step()
    assert len(found) == 6
