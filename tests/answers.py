"""The answers of a model to tokens that go on from a state."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def answered(model: Any, *given: Any) -> tuple[Tensor, Any]:
    """Logits and the state after them."""
    vectors, state = model(*given)
    return model.head(vectors), state
