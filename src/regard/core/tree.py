"""Records whose tensors torch can find: `fully_shard` and others walk through what a module is given and gives back.

Sharded training waits for the gradients of all tensors that went into a module before it lets its weights go. A memory
inside a record that nobody can walk through would come too late.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from torch.utils import _pytree as pytree

T = TypeVar("T", bound=type)


def walkable(record: T) -> T:
    """Make a dataclass one that torch walks through, field by field."""
    pytree.register_pytree_node(record, _fields, lambda values, _: record(*values))
    return record


def _fields(record: Any) -> tuple[list[Any], None]:
    return [getattr(record, field.name) for field in dataclasses.fields(record)], None
