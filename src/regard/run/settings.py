"""Settings of a run: where each value comes from and which one wins.

    defaults < size < recipe < --set < flags

A setting is named `section.key`, with the sections data, model and train (recipes: see `recipe`). An unknown key is an
error that names the nearest one. Every value keeps its origin, which `regard show RUN --origin` prints.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import tomllib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.settings import DEFAULT_PATH
from regard.errors import UsageError, nearest
from regard.run.rate import WIDTH, is_scaled, own_rate
from regard.training.settings import FORMER, renamed

if TYPE_CHECKING:
    from regard.core.registry import Entry

SECTIONS = ("data", "model", "train")
DEFAULT_DATA = DEFAULT_PATH
DEFAULT_MODEL = "gpt"
DEFAULT_SIZE = "small"
COMPARISON = "comparison"  # where a value comes from that a comparison gives or finds
TUNING = "fine-tuning"  # the same of what suits learning on from another run
RATE, START, LORA = "train.lr", "train.start", "model.lora"
OF_ALL = {"name": str, "size": str, "lora": int}  # settings of a model, whatever it is


@dataclass(frozen=True)
class Origin:
    """A value and the place it comes from."""

    value: Any
    place: str


Layer = dict[str, Origin]


@dataclass(frozen=True)
class Settings:
    """Every setting of a run by its dotted name, each with its origin."""

    table: Layer

    def __getitem__(self, key: str) -> Any:
        return self.table[key].value

    def section(self, name: str) -> dict[str, Any]:
        """The settings of one section, without its name."""
        return {key.partition(".")[2]: part.value for key, part in self.table.items() if key.startswith(f"{name}.")}

    @property
    def model_changes(self) -> dict[str, Any]:
        """Settings of the architecture that differ from its defaults and its size."""
        given = {key.partition(".")[2]: part for key, part in self.table.items() if key.startswith("model.")}
        return {
            key: part.value
            for key, part in given.items()
            if key not in OF_ALL and part.place != "default" and not part.place.startswith("size ")
        }

    @property
    def lora(self) -> int | None:
        """The rank of what is learnt beside what was learnt before; None: that itself is learnt on."""
        return self.table[LORA].value if LORA in self.table else None

    @property
    def origins(self) -> dict[str, str]:
        return {key: part.place for key, part in self.table.items()}

    @property
    def notes(self) -> list[str]:
        """What was chosen that a person may not expect."""
        rate = self.table[RATE]
        return [f"train.lr is {rate.value:g} ({rate.place})"] if is_scaled(rate.place) else []


def read_assignments(assignments: Iterable[str], place: str = "--set") -> Layer:
    """`section.key=value` words: values are TOML, bare words are strings."""
    layer: Layer = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{place} {text}: expected section.key=value, such as train.lr=3e-4")
        layer[key.strip()] = Origin(parse_value(value.strip()), place)
    return layer


def parse_value(text: str) -> Any:
    """A TOML value, or the text itself when it is none.

    >>> parse_value("3e-4"), parse_value("words"), parse_value("[1, 2]"), parse_value("2m")
    (0.0003, 'words', [1, 2], '2m')
    """
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        try:
            return float(text)  # .5 and 1. are numbers everywhere but in TOML
        except ValueError:
            return text
    value = table["value"]
    is_plain = len(table) == 1 and not isinstance(value, (datetime.date, datetime.time, dict))
    return value if is_plain else text


def resolve(*layers: Layer) -> Settings:
    """One table from layers, later ones winning over earlier ones and all of them over the defaults."""
    given = _joined(layers)
    for key in ("model.name", "model.size"):  # what the other settings are depends on these two
        if key in given:
            checked(given[key].value, str, key)
    table = _defaults(given)
    table |= _checked(given, table["model.name"].value)
    if RATE not in given:
        width = table.get(f"model.{WIDTH}", Origin(None, "")).value
        table[RATE] = Origin(*own_rate(_entry(table["model.name"].value), width))
    return Settings(table)


def resolve_data(*layers: Layer) -> Settings:
    """The same where nothing is said of a model and none is asked for: settings of data and of training."""
    given = _joined(layers)
    return Settings(_data_defaults() | _training_defaults() | _checked(given, DEFAULT_MODEL))


def _joined(layers: Iterable[Layer]) -> Layer:
    given: Layer = {}
    for layer in layers:
        given |= _renamed(layer)
    for key in given:
        _refuse_misplaced(key)
    return given


def _checked(given: Layer, model: str) -> Layer:
    """What was said, each setting as it is declared; an unknown one is refused."""
    table: Layer = {}
    for key, origin in given.items():
        section, _, name = key.partition(".")
        hints = known_settings(section, model)
        if name not in hints:
            subject = f"{model} has" if section == "model" else "there is"
            raise UsageError(f"{origin.place}: {key}: {subject} no such setting{nearest(name, hints)}")
        table[key] = Origin(checked(origin.value, hints[name], key), origin.place)
    return table


def _renamed(layer: Layer) -> Layer:
    """A layer with what an earlier regard called `train.tensorboard` under its present name."""
    former = layer.get(f"train.{FORMER}")
    if former is None:
        return layer
    present = {f"train.{key}": Origin(value, former.place) for key, value in renamed({FORMER: former.value}).items()}
    return present | {key: origin for key, origin in layer.items() if origin is not former}


def known_settings(section: str, model: str) -> dict[str, Any]:
    """The settings of a section and their types."""
    if section == "data":
        return {name: hint for name, (hint, _) in data_settings().items()}
    if section == "train":
        return {name: hint for name, (hint, _) in train_settings().items()}
    known = _entry(model)
    hints = typing.get_type_hints(known.preset)
    return OF_ALL | {name: hints.get(name, Any) for name in known.parameters_of_preset()}


@cache
def data_settings() -> dict[str, tuple[Any, Any]]:
    """What `data.KEY` may be: the type and default of each field of `DataSettings`."""
    from regard.data.settings import DataSettings

    return _fields(DataSettings())


@cache
def train_settings() -> dict[str, tuple[Any, Any]]:
    """What `train.KEY` may be: the type and default of each field of `TrainSettings`."""
    from regard.training.settings import TrainSettings

    return _fields(TrainSettings())


def _fields(default: Any) -> dict[str, tuple[Any, Any]]:
    """Type and default of each field of a dataclass, given one with its defaults."""
    hints = typing.get_type_hints(type(default))
    return {f.name: (hints[f.name], getattr(default, f.name)) for f in dataclasses.fields(default)}


def section_of(name: str, model: str) -> str:
    """The dotted name of a setting given by its key alone, as Python keywords are, or with its dot."""
    if name.partition(".")[0] in SECTIONS and "." in name:
        return name
    if name == FORMER:
        return f"train.{FORMER}"
    found = [section for section in SECTIONS if name in known_settings(section, model)]
    if len(found) > 1 and "model" in found and _entry(model).fitted:
        found = ["model"]  # of how gradients are followed a fitted model has no use
    if len(found) == 1:
        return f"{found[0]}.{name}"
    if found:
        raise UsageError(f"{name}: say which one, {' or '.join(f'{section}.{name}' for section in found)}")
    known = {key for section in SECTIONS for key in known_settings(section, model)}
    raise UsageError(f"{name}: there is no such setting{nearest(name, known)}")


def _defaults(given: Mapping[str, Origin]) -> Layer:
    table = _data_defaults()
    table["model.name"] = given.get("model.name", Origin(DEFAULT_MODEL, "default"))
    table["model.size"] = given.get("model.size", Origin(DEFAULT_SIZE, "default"))
    table |= _model_defaults(table["model.name"].value, table["model.size"].value)
    table |= _training_defaults()
    table |= _model_training(table["model.name"].value)
    return table


def _data_defaults() -> Layer:
    return {f"data.{name}": Origin(default, "default") for name, (_, default) in data_settings().items()}


def _training_defaults() -> Layer:
    return {f"train.{name}": Origin(default, "default") for name, (_, default) in train_settings().items()}


def _model_defaults(model: Any, size: Any) -> Layer:
    known = _entry(str(model))
    if size not in known.sizes:
        raise UsageError(f"{known.name} has no size {size!r}{nearest(str(size), known.sizes)}")
    table = {f"model.{key}": Origin(value, "default") for key, value in known.parameters_of_preset().items()}
    return table | {f"model.{key}": Origin(value, f"size {size}") for key, value in known.sizes[size].items()}


def _model_training(model: str) -> Layer:
    """Training settings that suit the architecture."""
    return {f"train.{key}": Origin(value, f"model {model}") for key, value in _entry(model).training.items()}


def _entry(model: str) -> Entry:
    from regard.core.registry import entry

    return entry(model)


def _refuse_misplaced(key: str) -> None:
    section, dot, name = key.partition(".")
    if not dot or not name:
        raise UsageError(
            f"{key}: expected section.key, such as model.{key} or train.{key} (sections: {', '.join(SECTIONS)})"
        )
    if section not in SECTIONS:
        raise UsageError(f"{key}: unknown section {section!r}{nearest(section, SECTIONS)}")


def checked(value: Any, hint: Any, where: str) -> Any:
    """`value` as its setting declares it, refused when no run could mean it."""
    from regard.core.config import decode
    from regard.data.settings import NUMBERED

    if where in NUMBERED and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    value = decode(str(value) if isinstance(value, Path) else value, hint, where)
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{where}: {value} is not a number that can be used")
    return value
