"""LoRA: a linear map as it was found, and beside it a change of low rank that is learnt (Hu et al. 2021, 4.1).

    y = x W^T + b + s (x A^T) B^T        s = 16 / r

A begins at random and B at zero, so that before the first step the map is what it was. Of a map of N x K numbers
r (N + K) are learnt. Whoever multiplies by the matrix itself finds W + s B A in its place, and a change that is to stay
is added to it once and for all (`merged`).

Glossary
A  lora_down (r, K)    B  lora_up (N, r)    r  the rank
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.linear import Linear

SCALE = 16.0
DOWN, UP = "lora_down", "lora_up"


class _LowRank(nn.Module):
    """A map with its change. W is the parameter of the name `weight`; the attribute is what is multiplied with."""

    lora_down: nn.Parameter
    lora_up: nn.Parameter
    bias: Tensor | None

    @property
    def weight(self) -> Tensor:
        """W + s B A."""
        return changed(self._found, self.lora_down, self.lora_up)

    @property
    def _found(self) -> Tensor:
        """W."""
        found = self._parameters["weight"]
        assert found is not None
        return found

    def times(self, x: Tensor) -> Tensor:
        """x W^T + b + s (x A^T) B^T, in which W itself needs no gradient."""
        beside = F.linear(F.linear(x, self.lora_down), self.lora_up) * _scale(self.lora_down)
        return F.linear(x, self._found, self.bias) + beside


class LowRankLinear(_LowRank, Linear):  # pyright: ignore[reportIncompatibleVariableOverride]  # made anew
    """`Linear` with a change of low rank."""

    def product(self, x: Tensor) -> Tensor:
        y = self.by_copy(x)  # of a copy that was made of W + s B A
        return self.times(x) if y is None else y


class LowRankTorchLinear(_LowRank, nn.Linear):  # pyright: ignore[reportIncompatibleVariableOverride]  # made anew
    """`nn.Linear` with a change of low rank."""

    def forward(self, input: Tensor) -> Tensor:
        return self.times(input)


MAPS: dict[type[nn.Module], type[_LowRank]] = {Linear: LowRankLinear, nn.Linear: LowRankTorchLinear}


def with_low_rank(module: nn.Module, rank: int) -> None:
    """Give every linear map in a module a change of this rank; one that is no wider stays as it is."""
    for part in list(module.modules()):
        kind = MAPS.get(type(part))
        weight = part._parameters.get("weight")
        if kind is None or weight is None or min(weight.shape) <= rank:
            continue
        n, k = weight.shape
        like = {"dtype": weight.dtype, "device": weight.device}
        down = nn.Parameter(torch.empty(rank, k, **like))
        nn.init.kaiming_uniform_(down, a=math.sqrt(5))
        part.register_parameter(DOWN, down)
        part.register_parameter(UP, nn.Parameter(torch.zeros(n, rank, **like)))
        part.__class__ = kind


def is_of_low_rank(name: str) -> bool:
    """Whether a parameter is part of such a change, by its name."""
    return name.endswith((f".{DOWN}", f".{UP}"))


def merged(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model by name, every change added to its matrix."""
    found = {name: tensor for name, tensor in tensors.items() if not is_of_low_rank(name)}
    for name, down in tensors.items():
        if name.endswith(f".{DOWN}"):
            of = name.removesuffix(DOWN)
            found[f"{of}weight"] = changed(tensors[f"{of}weight"], down, tensors[f"{of}{UP}"])
    return found


def changed(weight: Tensor, down: Tensor, up: Tensor) -> Tensor:
    """W + s B A."""
    return torch.addmm(weight, up, down, alpha=_scale(down))


def _scale(down: Tensor) -> float:
    return SCALE / down.shape[0]
