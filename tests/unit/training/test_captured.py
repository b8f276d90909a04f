"""The way of a captured step, walked on the CPU: a stand-in for the graph runs the step again at each replay."""

from __future__ import annotations

import gc
import weakref
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from regard.layers import position
from regard.training import captured, execution, step
from tiny_run import LENGTH, Recorder, model_of, run, weight_hash


class Graph:
    """Capturing leaves everything as it was; a replay does the work, on the memory of the capture."""

    made = 0

    def __init__(self):
        Graph.made += 1
        self.again = None

    def replay(self):
        loss, norm = self.again()
        self.loss.copy_(loss)
        self.norm.copy_(norm)


@pytest.fixture
def stand_in(monkeypatch):
    stream = SimpleNamespace(wait_stream=lambda other: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 1))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(Graph, "made", 0)
    real = captured.CapturedStep.__init__

    def capture(self, session, loaded, update):
        kept = [*session.model.parameters(), *session.optimiser.tensors().values(), session.is_bad]
        kept += [] if session.loss_scale is None else list(session.loss_scale.tensors().values())

        @contextmanager
        def graph(made, **_):
            before = [tensor.detach().clone() for tensor in kept]
            with torch.random.fork_rng(devices=[]):
                yield
            with torch.no_grad():
                for tensor, value in zip(kept, before, strict=True):
                    tensor.copy_(value)

        def again():
            found = update(self.batches)
            if self.state is not None:
                captured._copy_state(self.state, session.carried)
                session.carried = self.state
            return found

        monkeypatch.setattr(torch.cuda, "graph", graph)
        real(self, session, loaded, update)
        self.graph.again, self.graph.loss, self.graph.norm = again, self.loss, self.norm

    monkeypatch.setattr(captured.CapturedStep, "__init__", capture)
    chosen = execution.choose
    monkeypatch.setattr(execution, "choose", lambda session: replace(chosen(session), graphs=True))

    def numbers(session, loaded):
        """As on a GPU: in memory that a replay reads anew."""
        return session.given["tokens"].fill_(max(1, loaded.tokens)), session.given["rate"].fill_(session.rate)

    monkeypatch.setattr(step, "_numbers", numbers)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("gpt", {}), ("lstm", {}), ("lstm", {"precision": "float16"}), ("gpt", {"optimiser": "muon", "accumulate": 2})],
)
def test_replayed_steps_read_their_own_batch_rate_and_state(tmp_path, stand_in, monkeypatch, name, settings):
    model = {"model": model_of(name, dropout=0.2)}
    fast, result = run(tmp_path / "fast", **model, **settings)
    assert result.choice["graphs"]
    assert Graph.made == 1
    monkeypatch.setattr(step, "WARM_UPS", 1000)
    plain, _ = run(tmp_path / "plain", model=model_of(name, dropout=0.2), **settings)
    assert Graph.made == 1
    assert weight_hash(fast) == weight_hash(plain)


def test_a_captured_step_holds_the_angles_that_it_reads(tmp_path, stand_in, monkeypatch):
    made = []
    real = captured.CapturedStep.__init__
    monkeypatch.setattr(
        captured.CapturedStep, "__init__", lambda self, *given: (made.append(self), real(self, *given))[1]
    )
    position._kept.clear()
    run(tmp_path / "run", model=model_of("gpt", position="rotary"))
    (table,) = [weakref.ref(turns[0]) for key, turns in position._kept.items() if key[0] == LENGTH]
    position._kept.clear()
    gc.collect()
    assert table() is not None
    made.clear()
    gc.collect()
    assert table() is None


def test_what_cannot_be_captured_is_told_once_and_changes_no_number(tmp_path, stand_in, monkeypatch):
    plain, _ = run(tmp_path / "plain", model=model_of("lstm", dropout=0.2))

    def refuse(self, session, loaded, update):
        update(loaded.batches[:0] or [torch])  # something that fails in the middle of a step

    monkeypatch.setattr(captured.CapturedStep, "__init__", refuse)
    seen = Recorder()
    model, result = run(tmp_path / "run", model=model_of("lstm", dropout=0.2), display=seen)
    assert result.choice["failed"] == ["graphs"]
    assert len([note for note in seen.notes if "capturing the step failed" in note]) == 1
    assert weight_hash(model) == weight_hash(plain)


def test_somebody_who_listens_is_heard_at_every_step():
    model = model_of("gpt")
    assert not execution.is_listened_to(model)
    handle = model.head.register_forward_hook(lambda *_: None)
    assert execution.is_listened_to(model)
    handle.remove()
    model.head.weight.register_hook(lambda gradient: gradient)
    assert execution.is_listened_to(model)
