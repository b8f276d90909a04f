"""What there is: models, tasks, mixers and worlds, with one line each and sizes counted without allocating."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.core.registry import Entry

COUNTING_VOCABULARY = 257  # bytes and the end of a document


@dataclass(frozen=True)
class ModelCard:
    """One architecture: what it is for, where it comes from and how large its sizes are."""

    name: str
    task: str
    shape: str
    summary: str
    paper: str
    parameters: dict[str, int]


@dataclass(frozen=True)
class TaskCard:
    """A task in one line, the score it is judged by and the model that it takes."""

    name: str
    shape: str
    summary: str
    metric: str
    model: str


@dataclass(frozen=True)
class PartCard:
    """A mixer, a world, a look or a study in one line."""

    name: str
    summary: str


def models() -> list[ModelCard]:
    """Every registered architecture."""
    from regard.core.registry import entry, names

    return [_card(entry(name)) for name in names()]


def _card(known: Entry) -> ModelCard:
    from regard.tasks import shape_of

    return ModelCard(
        known.name,
        known.task,
        shape_of(known.task),
        known.summary,
        known.paper,
        parameters_by_size(known.name),
    )


def parameters_by_size(name: str) -> dict[str, int]:
    """Parameters of each size with a vocabulary of bytes; of `paper` with the vocabulary it was published with."""
    from regard.core.registry import entry
    from regard.training.estimate import count_parameters, on_meta

    known = entry(name)
    return {
        size: count_parameters(on_meta(known.config(known.counted_with(size, COUNTING_VOCABULARY), size)))
        for size in known.sizes
    }


def vocabularies_by_size(name: str) -> dict[str, int]:
    """Tokens that each size is counted with."""
    from regard.core.registry import entry

    known = entry(name)
    return {size: known.counted_with(size, COUNTING_VOCABULARY).vocab_size for size in known.sizes}


def tasks() -> list[TaskCard]:
    """Every registered task."""
    from regard.tasks import tasks as registered

    return [
        TaskCard(task.name, task.shape, first_line(sys.modules[type(task).__module__]), task.metric, task.model)
        for task in registered()
    ]


def mixers() -> list[PartCard]:
    """Every kind of mixer that has examples for the laws."""
    from regard.core.registry import MIXERS
    from regard.core.registry import mixers as known

    places = {f"regard.mixers.{name}": place for place, name in enumerate(MIXERS)}
    ordered = sorted(known().values(), key=lambda cls: places.get(cls.__module__, len(places)))
    return [PartCard(cls.kind, first_line(sys.modules[cls.__module__])) for cls in ordered]


def worlds() -> list[PartCard]:
    """Every built-in world."""
    from regard.data.worlds import names, world

    return [PartCard(name, first_line(sys.modules[type(world(name)).__module__])) for name in names()]


def citation(paper: str) -> str:
    """Who and when, in short.

    >>> citation("Gu, Dao 2023, Mamba"), citation("Cho, Bahdanau, Bengio 2014, Learning phrase representations")
    ('Gu, Dao 2023', 'Cho et al. 2014')
    """
    found = re.match(r"(.+?) (\d{4})\b", paper)
    if found is None:
        return paper
    authors = found[1].split(", ")
    return f"{found[1] if len(authors) < 3 else authors[0] + ' et al.'} {found[2]}"


def first_line(thing: Any) -> str:
    """The fact that opens a docstring."""
    return (thing.__doc__ or "").strip().partition("\n")[0]
