"""What a model costs: parameters and bytes of state by size, from shapes alone, and operations of a token, counted.

Operations are counted in float64, which no kernel takes: the count is that of the equations, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from regard.core.data_spec import DataSpec
from regard.core.inputs import Inputs, PastKnown, SourceTokens
from regard.core.model import logits_of
from regard.core.registry import Entry
from regard.layers.spelled import KINDS, SPELLING_LENGTH
from regard.run.catalogue import COUNTING_VOCABULARY
from regard.training.estimate import count_parameters, on_meta, state_size
from regard.training.flops import Counter

KEPT = 1024  # tokens after which a state is measured
LENGTHS = (16, 64, 256)  # of texts, and of their sources where they have one
SIZE = "small"  # whose operations are counted


@dataclass(frozen=True)
class Size:
    """parameters. state: bytes and growth of what is carried from token to token, None where nothing is."""

    parameters: int
    state: dict[str, Any] | None


@dataclass(frozen=True)
class Operations:
    """training: of a token, there and back, by the length of the text; of a forecast under 0. step: of one token more
    after the longest text, its logits included."""

    training: dict[int, float] = field(default_factory=dict)
    step: float | None = None


def sizes(entry: Entry) -> dict[str, Size]:
    """Every size of a model; `paper` with the vocabulary that it was published with, others with bytes."""
    found = {}
    for size in entry.sizes:
        shapes = on_meta(entry.config(entry.counted_with(size, COUNTING_VOCABULARY), size))
        found[size] = Size(count_parameters(shapes), state_size(shapes, KEPT) if _steps(shapes) else None)
    return found


def operations(entry: Entry) -> Operations:
    """What a token of the size `small` takes."""
    spec = entry.counted_with(SIZE, COUNTING_VOCABULARY)
    torch.manual_seed(0)
    model: Any = entry.config(spec, SIZE).build().double().eval()
    if model.reads == "numbers":
        return Operations({0: _training(model, spec, 0)})
    training = {length: _training(model, spec, length) for length in LENGTHS}
    return Operations(training, _step(model, spec) if _steps(model) else None)


def _steps(model: Any) -> bool:
    """Whether it is used token by token."""
    return getattr(model, "has_state", True) and hasattr(model, "init_state") and model.stack.causal


def _training(model: Any, spec: DataSpec, length: int) -> float:
    """Operations of reading and of the way back: a token's, or a forecast's."""
    with Counter() as counter:
        logits_of(model, _inputs(model, spec, length)).sum().backward()
    return counter.total / max(1, length)


@torch.no_grad()
def _step(model: Any, spec: DataSpec) -> float:
    inputs = _inputs(model, spec, LENGTHS[-1])
    told, tokens = (model.given(inputs.source), inputs.tokens) if isinstance(inputs, SourceTokens) else (model, inputs)
    _, state = told(tokens, told.init_state(1))
    with Counter() as counter:
        told.head(told(tokens[:, :1], state)[0])
    return counter.total


def _inputs(model: Any, spec: DataSpec, length: int) -> Inputs:
    """Something to read of so many tokens."""
    tokens = torch.zeros(1, length, dtype=torch.long)
    if model.reads == "numbers":
        past = torch.randn(1, spec.history, spec.n_channels, dtype=torch.float64)
        return PastKnown(past, torch.randn(1, spec.horizon, spec.n_known, dtype=torch.float64))
    if model.reads == "pictures":
        assert spec.picture is not None
        return SourceTokens(torch.rand(1, *spec.picture, dtype=torch.float64), tokens)
    if hasattr(model, "given"):
        return SourceTokens(tokens, tokens)
    if model.reads == "words":
        return torch.zeros(1, length, 1 + SPELLING_LENGTH + KINDS, dtype=torch.long)
    return tokens
