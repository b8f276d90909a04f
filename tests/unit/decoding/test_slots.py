"""What slots hold is theirs alone: rows that begin with a state of somebody else leave it as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.core.registry import build
from regard.decoding.engine import Engine
from regard.decoding.generate import Limits, generate
from regard.decoding.logits_processing import GREEDY

SOURCES = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 1]])
STARTS = [[1], [2], [1, 5], [2, 9, 4]]


def given(name: str, source: torch.Tensor) -> Any:
    torch.manual_seed(2)
    model = build(name, vocab_size=11, size="tiny").double().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(2.0)
    return model.given(source)


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_slots_used_again_leave_the_state_that_rows_begin_with_as_it_was(name: str, together: int, ahead: int) -> None:
    """Four requests in two slots, of two sources, each prompt read from one state."""
    model, limits = given(name, SOURCES), Limits(9, eos_id=0)
    with torch.no_grad():
        start = model.init_state(2)
    before = [tensor.clone() for tensor in start.tensors()]
    found: list[list[int]] = [[] for _ in STARTS]
    with Engine(model, 2, together=together, ahead=ahead) as engine:
        for number, prompt in enumerate(STARTS):
            engine.submit(prompt, limits, GREEDY, start=(start, number % 2))
        while engine.busy:
            for drawn in engine.step():
                found[drawn.request].append(drawn.token)
    assert all(torch.equal(now, then) for now, then in zip(start.tensors(), before, strict=True))
    for number, prompt in enumerate(STARTS):
        source = given(name, SOURCES[number % 2 : number % 2 + 1])
        [alone] = generate(source, [torch.tensor(prompt)], limits=limits, settings=GREEDY)
        assert found[number] == list(alone.tokens)


@pytest.mark.parametrize("ahead", [1, 4])
def test_a_row_that_slides_begins_with_its_source_again(ahead: int) -> None:
    model, limits = given("seq2seq", SOURCES), Limits(20, window=6)
    with torch.no_grad():
        start = model.init_state(2)
    found: list[list[int]] = [[], []]
    with Engine(model, 2, together=2, ahead=ahead) as engine:
        for number in range(2):
            engine.submit([1], limits, GREEDY, start=(start, number))
        while engine.busy:
            for drawn in engine.step():
                found[drawn.request].append(drawn.token)
    for number in range(2):
        [alone] = generate(
            given("seq2seq", SOURCES[number : number + 1]), [torch.tensor([1])], limits=limits, settings=GREEDY
        )
        assert found[number] == list(alone.tokens)
