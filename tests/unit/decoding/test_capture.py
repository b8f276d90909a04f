"""What is tried before it is recorded leaves no trace, and what cannot be recorded is run as it is. Without a GPU."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from regard.core.registry import build
from regard.decoding.capture import Captured, tried
from regard.decoding.engine import Engine
from regard.decoding.generate import Limits
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.kernels import operators

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


def test_a_cpu_has_no_graphs() -> None:
    assert Captured(torch.device("cpu"), True).told == "no graphs: the device is cpu"
    assert Captured(torch.device("cpu"), False).told == "no graphs: not asked for"
