"""A tap is the identity, says whether somebody listens, and is nothing to a compiler."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.core.tap import Tap, record


class Doubled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = Tap()

    def forward(self, x: Tensor) -> Tensor:
        # What a fast path never forms is formed where somebody listens.
        return self.seen(x + x) if self.seen.recorded else self.seen(2 * x)


def test_recorded_says_whether_somebody_listens() -> None:
    module = Doubled()
    assert not module.seen.recorded
    with record(module) as seen:
        assert module.seen.recorded
        module(torch.ones(2))
    assert not module.seen.recorded
    assert seen["seen"][0].tolist() == [2.0, 2.0]


def test_a_tap_leaves_nothing_in_compiled_code() -> None:
    graphs: list[Any] = []

    def keep(graph: Any, _inputs: object) -> Any:
        graphs.append(graph)
        return graph.forward

    module = Doubled()
    y = torch.compile(module, backend=keep, fullgraph=True)(torch.ones(3))
    assert y.tolist() == [2.0, 2.0, 2.0]
    (graph,) = graphs
    assert [node.op for node in graph.graph.nodes] == ["placeholder", "call_function", "output"]
