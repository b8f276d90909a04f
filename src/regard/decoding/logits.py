"""What decoding reads off a model, without ever holding the logits of a long text whole.

A model's head is asked only where its answer is needed: at the last token of a prompt, or for a few thousand positions
at a time. A model whose vectors are as wide as its vocabulary, as those of a counting model, is run on short chunks
with its state carried.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.core.device import any_device
from regard.core.model import TokenModel
from regard.core.state import State
from regard.core.tap import resting
from regard.decoding.logits_processing import raw_log_probs
from regard.errors import UsageError

# Logits alive at one time: 16 Mi numbers are 64 MiB in float32.
LOGITS_AT_ONCE = 1 << 24
# Tokens that go through the stack in one call while scoring.
TOKENS_AT_ONCE = 1 << 14
# Tokens of each text that are read in one call before it goes on: other texts step in between.
CHUNK = 256
STEPS_RESERVED = 256


@runtime_checkable
class Direct(Protocol):
    """A model that knows single probabilities without making whole distributions."""

    def log_probs(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """log p of every token but the first after those before it, and the state before the last one."""
        ...


@contextmanager
def eval_mode(model: TokenModel) -> Iterator[None]:
    """Evaluation mode, each part put back in its own mode afterwards.

    Refuses a model that looks at the future: its probabilities of the next token are no predictions.
    """
    if not getattr(model, "causal", True):
        raise UsageError("this model looks at the future (causal = False), so it can neither generate nor score text")
    with resting(model) if isinstance(model, nn.Module) else nullcontext():
        yield


def model_device(model: TokenModel) -> torch.device:
    """Where the model wants its tokens."""
    # A first state may cost the reading of a source.
    found = any_device(model) if isinstance(model, nn.Module) else None
    return model.init_state(1).position.device if found is None else found


@torch.no_grad()
def read(
    model: TokenModel, tokens: Int[Tensor, "B T"], targets: Int[Tensor, "B T"], state: State, *, best: bool = True
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"], State]:
    """log p of each target after its token, whether it was the most probable one, and the state.

    targets  the tokens one further on.
    best     whether the second answer is wanted; without it a model may get by without whole distributions, and the
             answer is False.
    """
    rows, length = tokens.shape
    chunk = max(1, TOKENS_AT_ONCE // rows)
    if best or not isinstance(model, Direct):
        chunk = tokens_at_once(model, rows, chunk)
    log_probs, first = [], []
    for start in range(0, length, chunk):
        part = slice(start, start + chunk)
        chosen, is_first, state = _read_chunk(model, tokens[:, part], targets[:, part], state, best)
        log_probs.append(chosen)
        first.append(is_first)
    return torch.cat(log_probs, 1), torch.cat(first, 1), state


def _read_chunk(
    model: TokenModel, tokens: Tensor, targets: Tensor, state: State, best: bool
) -> tuple[Tensor, Tensor, State]:
    if not isinstance(model, Direct):
        values, after = model(tokens, state)
        return *_of_targets(model, values, targets), after
    # What the model says of one token is its word, also where its distributions do not quite sum to 1.
    chosen, after = model.log_probs(torch.cat([tokens, targets[:, -1:]], 1), state)
    if not best:
        return chosen, torch.zeros_like(targets, dtype=torch.bool), after
    values, _ = model(tokens, state)
    return chosen, _of_targets(model, values, targets)[1], after


def _of_targets(model: TokenModel, values: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """log p (B, T) of the targets, and whether each is the most probable token; the head is applied piece by piece."""
    piece = max(1, LOGITS_AT_ONCE // model.vocab_size)
    log_probs, best = [], []
    for part, wanted in zip(values.flatten(0, 1).split(piece), targets.flatten().split(piece), strict=True):
        distribution = raw_log_probs(model.head(part))
        log_probs.append(distribution.gather(-1, wanted[:, None])[:, 0])
        best.append(distribution.argmax(-1) == wanted)
    return torch.cat(log_probs).view(targets.shape), torch.cat(best).view(targets.shape)


def tokens_at_once(model: TokenModel, rows: int, most: int) -> int:
    """Tokens of each of so many rows that are read in one call, `most` of them where vectors are narrow.

    A model without a head gives whole distributions for every token.
    """
    narrow = not isinstance(model.head, nn.Identity)
    return most if narrow else max(1, min(most, LOGITS_AT_ONCE // (model.vocab_size * rows)))


def steps_reserved(seen: int) -> int:
    """Steps for which a state is given room at once: a longer text gets as much room again as it has used."""
    return max(STEPS_RESERVED, seen)
