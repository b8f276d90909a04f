"""Evidence: what a sum is made of, so that one can see which parts decided it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor

# Parts by name, each with its weight: those that speak most for a class, and those that speak most against it.
Sides = tuple[list[tuple[str, float]], list[tuple[str, float]]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """z_c = offsets_c + sum_i values_i weights_ic

    names    of the parts that are there. values (n,): how much each counts. weights (n, C): what each says.
    offsets  (C,): what is said without any. note: what else a person should know of it.
    """

    names: list[str]
    values: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    note: str = ""

    @property
    def parts(self) -> np.ndarray:
        """What each part adds to each class beyond what it adds to all on average, (n, C); of one number all."""
        return beyond_mean(self.values[:, None] * self.weights)

    @property
    def base(self) -> np.ndarray:
        """The same of the offsets, (C,)."""
        return beyond_mean(self.offsets[None])[0]


def beyond_mean(added: np.ndarray) -> np.ndarray:
    """What is added to each class (n, C) less what is added to all on average; one number stays as it is."""
    return added - added.mean(1, keepdims=True) if added.shape[1] > 1 else added


@runtime_checkable
class HasEvidence(Protocol):
    """A model whose answer is such a sum, or has a half that is."""

    def evidence(self, text: str) -> Evidence: ...


@runtime_checkable
class Weighs(HasEvidence, Protocol):
    """A model whose answer is such a sum over parts that it knows by name."""

    def heaviest(self, numbers: Sequence[int], count: int) -> list[Sides]:
        """Of each of some classes the parts that speak most for it, and against it, beyond what they say on average."""
        ...


@runtime_checkable
class WeighsWords(Protocol):
    """A model whose answer at a word is such a sum."""

    def evidence(self, words: Sequence[str], place: int) -> Evidence: ...

    def emissions(self, sentences: Sequence[Sequence[str]]) -> Tensor: ...
