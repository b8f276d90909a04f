"""Linear maps whose weights are kept in few bits, and the way back: the same model with these numbers in float32."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from torch import Tensor, nn


class FewBits(nn.Module):
    """A map whose `weight` is made anew of what is kept.

    wide  the class that has it as a parameter. kept: names of the buffers that it is made of.
    """

    wide: ClassVar[type[nn.Module]]
    kept: ClassVar[tuple[str, ...]]
    _packed: Any = None  # what is kept in another order, made again when it is wanted


def widened(model: nn.Module) -> nn.Module:
    """The model with the numbers of its maps in float32; itself where none is in few bits. What is whole is shared."""
    narrow = [part for part in model.modules() if isinstance(part, FewBits)]
    if not narrow:
        return model
    tensors: list[Any] = [*model.parameters(), *model.buffers(), *(part._packed for part in narrow)]
    wide = copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
    made: dict[int, nn.Parameter] = {}  # a table that several parts have is one again
    for part in [part for part in wide.modules() if isinstance(part, FewBits)]:
        kept: Tensor = getattr(part, part.kept[0])
        if id(kept) not in made:
            whole: Any = part.weight
            made[id(kept)] = nn.Parameter(whole, requires_grad=False)
        for name in part.kept:
            delattr(part, name)
        part.__class__ = part.wide  # pyright: ignore[reportAttributeAccessIssue]  # any class of a module
        part.weight = made[id(kept)]
    return wide
