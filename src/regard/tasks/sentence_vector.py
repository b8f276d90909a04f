"""The answer of a sentence encoder to a text: its vector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from regard.core.context import Context
from regard.core.device import device_of
from regard.core.model import Embeds
from regard.data.ragged import Ragged, in_batches
from regard.errors import UsageError
from regard.tasks.verbs import Answer

if TYPE_CHECKING:
    from torch import nn

DIGITS = 6  # of the numbers of a vector that is printed


@torch.no_grad()
def embedded(model: Embeds, texts: Sequence[Any], ids: Ragged, padding: int) -> Iterator[Answer]:
    """The vector of each text, of which `ids` has the tokens; as JSON, and as numbers in the details."""
    whole: Any = model
    found: dict[int, list[float]] = {}
    for rows in in_batches(ids.sizes.tolist()):
        tokens, lengths = (one.to(device_of(whole)) for one in ids.padded(rows, padding))
        found |= dict(zip(rows.tolist(), model.embed(tokens, Context(lengths=lengths)).tolist(), strict=True))
    for number, text in enumerate(texts):
        told = json.dumps([float(f"{value:.{DIGITS}g}") for value in found[number]])
        yield Answer(told, {"input": str(text), "vector": found[number]})


def require_head(model: nn.Module) -> None:
    """Refuse to measure how masks are filled in by a model that fills in none."""
    if isinstance(model, Embeds):
        raise UsageError(
            "the model gives vectors of texts and fills in no masks: there is nothing to evaluate; train a task on it "
            "with --from, or ask for vectors with generate"
        )
