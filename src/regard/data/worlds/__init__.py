"""Worlds: built-in data from small generated languages and tasks whose best possible score is known exactly."""

from __future__ import annotations

import importlib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from regard.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.data.worlds.base import ExampleWorld, Generated, World

PREFIX = "world:"

# Name to file and class. The one line of a world.
WORLDS = {
    "ab": ("regard.data.worlds.ab", "LetterStrings"),
    "electricity": ("regard.data.worlds.electricity", "ElectricityMarket"),
    "stories": ("regard.data.worlds.stories", "Stories"),
    "witness": ("regard.data.worlds.witness", "Witness"),
    "dates": ("regard.data.worlds.dates", "Dates"),
    "translation": ("regard.data.worlds.translation", "Translation"),
    "reviews": ("regard.data.worlds.reviews", "Reviews"),
    "ratings": ("regard.data.worlds.ratings", "Ratings"),
    "topics": ("regard.data.worlds.topics", "Topics"),
    "tags": ("regard.data.worlds.tags", "Tags"),
    "shapes": ("regard.data.worlds.shapes", "Shapes"),
    "recall": ("regard.data.worlds.recall", "Recall"),
    "noisy_recall": ("regard.data.worlds.recall", "NoisyRecall"),
    "fuzzy_recall": ("regard.data.worlds.recall", "FuzzyRecall"),
    "multi_recall": ("regard.data.worlds.recall", "MultiRecall"),
    "memorisation": ("regard.data.worlds.recall", "Memorisation"),
    "selective_copy": ("regard.data.worlds.probe", "SelectiveCopy"),
    "compression": ("regard.data.worlds.probe", "Compression"),
    "induction": ("regard.data.worlds.probe", "Induction"),
    "parity": ("regard.data.worlds.probe", "Parity"),
    "majority": ("regard.data.worlds.probe", "Majority"),
}


def names() -> list[str]:
    """Every world."""
    return list(WORLDS)


def world(name: str, /, **settings: Any) -> Generated:
    """The world of that name; an unknown name or setting names the nearest one."""
    if name not in WORLDS:
        raise UsageError(f"unknown world {name!r}{nearest(name, WORLDS)}")
    module, cls = WORLDS[name]
    kind: type[Generated] = getattr(importlib.import_module(module), cls)
    known = [field.name for field in fields(kind)]
    for key, value in settings.items():
        if key not in known:
            raise UsageError(f"{PREFIX}{name} has no setting {key!r}{nearest(key, known)}")
        if type(value) is not int:
            raise UsageError(f"{PREFIX}{name}: {key} must be a whole number, found {value!r}")
    return kind(**settings)


def from_spec(spec: str, seed: int = 0) -> Generated:
    """The world of an address such as `world:stories?train=5000&seed=3`. `seed` holds where the address has none."""
    name, _, query = spec.removeprefix(PREFIX).partition("?")
    settings: dict[str, Any] = {}
    for pair in query.split("&") if query else []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{spec}: expected key=value, found {pair!r}")
        try:
            settings[key] = int(value)
        except ValueError:
            raise UsageError(f"{spec}: {key} must be a whole number, found {value!r}") from None
    return world(name, **({"seed": seed} | settings))


def world_of(spec: str, task: str, seed: int = 0) -> ExampleWorld[Any]:
    """The world of an address, refused when its examples are for another task."""
    from regard.data.worlds.base import ExampleWorld

    found = from_spec(spec, seed)
    if not isinstance(found, ExampleWorld) or found.task != task:
        raise UsageError(
            f"{PREFIX}{found.name} holds {found.task}, not {task}: train a model for the task {found.task}"
        )
    return found


def text_world(spec: str, seed: int = 0) -> World:
    """The world of an address, refused when what it holds is no text."""
    from regard.data.worlds.base import World

    found = from_spec(spec, seed)
    if not isinstance(found, World):
        raise UsageError(f"{PREFIX}{found.name} holds {found.task}, not text: train a model for the task {found.task}")
    return found
