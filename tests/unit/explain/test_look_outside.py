"""Looks at mixers that explain knows nothing of: by what they declare, and by a mechanism that is registered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from look_run import SIZE, TEXT, TOKENIZER, seen
from regard.core.bidirectional import BidirectionalConfig
from regard.core.context import EMPTY, Context
from regard.core.mixer import Mixer, Shows
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.state import Position, State, advance, zero_position
from regard.core.tap import Tap
from regard.errors import UsageError
from regard.explain import mechanism as mechanisms
from regard.explain.inputs import read
from regard.explain.look import Look, register_look
from regard.explain.looks.attention import attention, heads, measures, rollout
from regard.explain.looks.gates import gates
from regard.explain.looks.states import moving
from regard.explain.looks.steps import steps
from regard.explain.mechanism import Mechanism, register_mechanism
from regard.explain.registry import capabilities, view, views
from regard.explain.view import Note
from regard.layers.embedding import EmbeddingConfig
from regard.models.language import LanguageModelConfig
from regard.run.run import Run
from regard.tasks.text import PlainText, TextProcessor


@dataclass(frozen=True)
class LookerConfig(MixerConfig, kind="looker"):
    def build(self) -> Looker:
        return Looker(self)


class Looker(Mixer):
    """Full attention of one head with a gate, under names of its own."""

    causal, permutes = False, True
    shows: ClassVar[Shows] = {"eyes": "attention", "lids": "gate"}

    def __init__(self, config: LookerConfig) -> None:
        super().__init__()
        self.map = nn.Linear(config.d_model, config.d_model)
        self.eyes, self.lids = Tap(2), Tap()

    def init_state(self, batch_size: int) -> State:
        return Position(zero_position(batch_size, self.device_of_state()))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> tuple[Tensor, State]:
        state = self.init_state(len(x)) if state is None else state
        weights = self.eyes((self.map(x) @ x.transpose(1, 2)).softmax(-1)[:, None])[:, 0]
        y = self.lids(self.map(x).sigmoid()) * (weights @ x)
        return y, Position(advance(state.position, x.shape[1], context.lengths))


def outside_run(mixer: MixerConfig, layers: int = 2) -> Run:
    torch.manual_seed(2)
    stack = StackConfig(8, (BlockConfig(8, mixer),) * layers)
    model: Any = LanguageModelConfig(EmbeddingConfig(SIZE, 8), stack).build().double().eval()
    config = {"model": {"name": "outside"}, "data": {"task": "text"}, "train": {"length": 32, "seed": 0}}
    return Run(Path("run"), config, PlainText(length=32), model, TextProcessor(TOKENIZER))


def weights_by_hand(run: Any) -> list[np.ndarray]:
    """The weights (T, T) of each layer."""
    x = run.model.embedding(run.writer.prompt_ids(TEXT)[None], torch.zeros(1, dtype=torch.long))
    later = read(run, TEXT).trace("stack.streams.0")["stack.streams.0"]
    both = zip(run.model.stack.layers, (x, later), strict=True)
    return [(block.mixer.map(x) @ x.transpose(1, 2)).softmax(-1)[0].detach().numpy() for block, x in both]


def test_attention_is_shown_under_whatever_name_its_tap_has() -> None:
    run = outside_run(LookerConfig(8))
    first, second = weights_by_hand(run)
    np.testing.assert_allclose(seen(run, attention, layer=1)["weights"].weights, first, atol=1e-12)
    np.testing.assert_allclose(seen(run, attention)["weights"].weights, second, atol=1e-12)
    eye = np.eye(len(first))
    np.testing.assert_allclose(
        seen(run, rollout)["weights"].weights, (second + eye) / 2 @ (first + eye) / 2, atol=1e-12
    )
    rows = {row[0]: row[2:7] for row in seen(run, heads)["heads"].rows}
    np.testing.assert_allclose(rows[1], measures(first[None].astype("float32"))[0], rtol=1e-5)
    with pytest.raises(UsageError, match="looker shows no values of its own"):
        seen(run, attention, by_values=True)


def test_attention_that_reads_backwards_is_turned_to_the_order_of_the_text() -> None:
    @dataclass(frozen=True)
    class CausalConfig(LookerConfig, kind="causal-looker"):
        def build(self) -> Looker:
            return Causal(self)

    class Causal(Looker):
        causal, permutes = True, False

        def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> tuple[Tensor, State]:
            state = self.init_state(len(x)) if state is None else state
            scores = self.map(x) @ x.transpose(1, 2)
            weights = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
            y = self.lids(self.map(x).sigmoid()) * (self.eyes(weights[:, None])[:, 0] @ x)
            return y, Position(advance(state.position, x.shape[1], context.lengths))

    run = outside_run(BidirectionalConfig(8, CausalConfig(8)), 1)
    matrix = seen(run, rollout)["weights"].weights
    assert matrix[0, -1] > 0  # the backward direction looks at what comes after
    np.testing.assert_allclose(matrix.sum(1), np.ones(len(matrix)))
    assert {row[1] for row in seen(run, heads)["heads"].rows} == {1}


def test_gates_without_a_state_are_shown_alone() -> None:
    view = seen(outside_run(LookerConfig(8)), gates, layer=1)
    assert [panel.key for panel in view.panels] == ["gates"]
    assert view["gates"].rows == ["lids"]
    assert view.title == "The gates of layer 1 of looker over the text"


def test_the_state_of_an_unknown_mixer_is_that_which_its_tap_sees() -> None:
    @dataclass(frozen=True)
    class SumConfig(MixerConfig, kind="outside-sum"):
        def build(self) -> Sum:
            return Sum()

    class Sum(Mixer):
        shows: ClassVar[Shows] = {"total": "state"}

        def __init__(self) -> None:
            super().__init__()
            self.total = Tap()

        def init_state(self, batch_size: int) -> State:
            return Position(zero_position(batch_size, None))

        def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> tuple[Tensor, State]:
            state = self.init_state(len(x)) if state is None else state
            y = self.total(x.cumsum(1))
            return y, Position(advance(state.position, x.shape[1], context.lengths))

    run: Any = outside_run(SumConfig(8), 1)
    x = run.model.embedding(run.writer.prompt_ids(TEXT)[None], torch.zeros(1, dtype=torch.long))[0].detach()
    sizes = x.cumsum(0).norm(dim=1)
    found = seen(run, moving)["sizes"].lines["sum 1"]
    np.testing.assert_allclose([y for _, y in found], sizes.numpy(), atol=1e-12)
    assert "hidden" in views(run)


def test_a_mechanism_from_outside_has_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    run = outside_run(LookerConfig(8))
    assert "steps" not in views(run)
    monkeypatch.setattr(mechanisms, "_mechanisms", dict(mechanisms._mechanisms))
    worked = Mechanism("looker", title="looker", steps=lambda given: [Note(text=given.label, key="mine")])
    register_mechanism(Looker, worked)
    assert "steps" in views(run)
    assert seen(run, steps, position=2)["mine"].text == read(run, TEXT).main.labels[2]


def test_what_can_be_asked_of_a_run_is_what_its_task_and_its_parts_say() -> None:
    can = capabilities(outside_run(LookerConfig(8)))
    assert (can.next, can.tokens, can.classes, can.fitted) == (True, True, False, False)
    assert can.shows == {"attention", "gate", "stream"}


def test_a_look_from_outside_may_not_take_the_name_of_another() -> None:
    def mine(reading: Any, options: Any) -> Any:
        raise AssertionError

    with pytest.raises(UsageError, match=r"'attention' of a look is taken by regard\.explain\.looks\.attention"):
        register_look(Look("attention", "mine", mine))
    run = outside_run(LookerConfig(8))
    with pytest.raises(UsageError, match="a outside model has no senses to show; this run can show attention"):
        view(run, "senses", TEXT)
