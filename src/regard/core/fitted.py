"""Fitted models: counted, or solved for exactly, all at once instead of by steps along gradients.

    facts = model.fit(data, settings, tell)             all that it learns
    logits = logits_of(model, inputs, context=context)  and then it answers as every model does

A config whose `fitted` is True builds such a model. `data` is what its task gives to fitted models: a text its ids, a
task of examples an `ExampleData`. `facts` are plain values for config.json; a line for people stands under "told".
The numbers of a model are its parameters and buffers. One whose numbers have no shape before the fit writes its own
file (`OwnFile`), as `regard.fitting.model.FittedModel` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from regard.core.workers import ALONE, Labour

if TYPE_CHECKING:
    from torch import Tensor

D = TypeVar("D", contravariant=True)
DEFAULT_MEMORY = 1 << 30
TOLD = "told"  # the fact that is a line for people


@dataclass(frozen=True)
class FitSettings:
    """What a fit may use.

    seed    of whatever is drawn.
    memory  bytes to work in, about; folder: for what does not fit in them, None for the system's own.
    judge   the held-out loss of the model as it stands.
    class_weights  how much examples of each class count, for a model that weighs them; None: the same.
    labour  who works, each in so much memory, for a model whose work can be shared out.
    """

    seed: int = 0
    memory: int = DEFAULT_MEMORY
    folder: Path | None = None
    judge: Callable[[], float] = lambda: float("nan")
    class_weights: tuple[float, ...] | None = None
    labour: Labour = ALONE


@runtime_checkable
class GivenExamples(Protocol):
    """The training part of a task of examples: `rows`, of which batches are made, and columns as people write them."""

    @property
    def rows(self) -> Any: ...

    def column(self, name: str) -> Sequence[Any]: ...


@runtime_checkable
class Tell(Protocol):
    """Who is told how a fit goes."""

    def __call__(self, part: str, share: float) -> None:
        """How much of a part of the work is done, 0 to 1."""
        ...

    def note(self, text: str) -> None:
        """What a person should know; it is kept with the run."""
        ...


class Nobody:
    """Is told and says nothing."""

    def __call__(self, part: str, share: float) -> None: ...
    def note(self, text: str) -> None: ...


class Noted(Nobody):
    """Passes notes on and says nothing else."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self.take = take

    def note(self, text: str) -> None:
        self.take(text)


@runtime_checkable
class Fitted(Protocol[D]):
    """A model that is fitted at once."""

    def fit(self, data: D, settings: FitSettings, tell: Tell) -> Mapping[str, Any]:
        """Learn all of `data`, forget all from before, and give the facts of it."""
        ...


@runtime_checkable
class Begins(Protocol[D]):
    """A model that learns by steps, a part of which is solved for before the first of them."""

    def begin(self, data: D, settings: FitSettings, tell: Tell) -> None:
        """Solve for that part. data: what a fitted model of the same task is given."""
        ...


@runtime_checkable
class OwnFile(Protocol):
    """A model that says itself what is in its file of weights."""

    def stored(self) -> dict[str, Tensor]:
        """What goes into the file, by name."""
        ...

    def open_file(self, path: Path) -> None:
        """Take what a file holds; one that is not of such a model is refused."""
        ...
