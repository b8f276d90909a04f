"""Entrants: the models of a comparison, which ones fit a task, and how they are brought to one size.

An entrant is a name, with settings after a question mark: `lstm`, `lstm?n_layers=3`, `gpt?position=alibi&lr=1e-3`; or
the folder of a run that it begins with: `runs/minilm`, `runs/gpt2?lora=8`.

Models of the same size: the width at which a model has about so many parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.core.data_spec import DataSpec
from regard.core.plugin import imported
from regard.core.registry import entry
from regard.errors import RegardError, UsageError
from regard.run.rate import WIDTH
from regard.run.settings import START, Layer, Origin, Settings, parse_value, section_of
from regard.run.start import model_config, refuse_vectors, task_of_start
from regard.tasks import TEXT, task_named
from regard.training.estimate import count_parameters, on_meta

WIDEST = 4096
# Widths around the one that the search ends at: heads allow only some of them.
NEAR, FAR = 16, 128

# A width to its count of parameters, None where a model cannot have that width.
Counted = Callable[[int], int | None]
NARROW = 48
FITTED = "is fitted at once"
CLOSE = 0.05
SCRIPT = "__main__"


def parameters(name: str, spec: DataSpec | int, size: str = "small", **settings: Any) -> int | None:
    """How many numbers a registered model learns; None of one that is fitted at once."""
    config = entry(name).config(spec, size, **settings)
    return None if config.fitted else count_parameters(on_meta(config))


def nearest_width(counted: Counted, target: int, worth: Callable[[int, int], Any] | None = None) -> tuple[int, int]:
    """The width whose count is nearest to the target, and the count; more width is always more parameters.

    worth  what to take the smallest of among the widths nearby, (width, count), instead of the distance.
    """

    def of(width: int) -> int | None:
        try:
            return counted(width)
        except (RegardError, ValueError):
            return None

    low, high = 1, WIDEST
    while high - low > 1:
        middle = (low + high) // 2
        near = next((found for width in range(middle, middle + FAR // 2) if (found := of(width)) is not None), None)
        low, high = (middle, high) if near is not None and near <= target else (low, middle)
    for reach in (NEAR, FAR):
        widths = range(max(1, low - reach), low + reach + 2)
        around = [(width, found) for width in widths if (found := of(width)) is not None]
        if around:
            return min(around, key=lambda pair: worth(*pair) if worth else abs(pair[1] - target))
    raise UsageError(f"no width gives about {target:,} parameters; set model.d_model")


def width_for(name: str, spec: DataSpec | int, target: int, every: int = 4, **settings: Any) -> int:
    """The d_model, a multiple of `every`, that comes nearest to `target` parameters."""

    def counted(width: int) -> int | None:
        return None if width % every else parameters(name, spec, d_model=width, **settings)

    return nearest_width(counted, target)[0]


@dataclass(frozen=True)
class Entrant:
    """A model of a comparison.

    label    its row's name.
    changes  what was said of it, by dotted setting, the model's name among them.
    """

    label: str
    changes: Layer = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    """An entrant at the common size: the width that was set for it, its parameters, and why they are not the same.

    Of an ensemble the parameters are those of all parts, each of which has the common size.

    start  the run that it begins with: its size is that.
    """

    width: int | None
    parameters: int
    note: str = ""
    start: str = ""

    @property
    def fitted(self) -> bool:
        """Whether the model is fitted at once and learns nothing by steps."""
        return self.note == FITTED


def read_entrant(text: str, task: str = TEXT) -> Entrant:
    """The entrant that a person wrote, for data of a task."""
    name, _, query = text.strip().partition("?")
    if not name:
        raise UsageError("--models: a name is missing; write such as --models ngram,lstm,gpt")
    model, changes = _named(name, task)
    for pair in query.split("&") if query else []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--models {text}: expected key=value after the question mark, found {pair!r}")
        changes[key if "." in key else section_of(key, model)] = Origin(parse_value(value), "--models")
    return Entrant(text.strip(), changes)


def _named(name: str, task: str) -> tuple[str, Layer]:
    """The model of a name or of a folder, and what is said by it."""
    from regard.core.registry import entry, names
    from regard.models.encoder_stack import encoders

    known = task_named(task)
    if name not in names() and ("/" in name or Path(name).expanduser().is_dir()):
        _, own = task_of_start(name, task, is_told=True)
        return own or known.model, {START: Origin(name, "--models")}
    # A mixer is no model, and still the name of an encoder.
    model = known.headed if known.headed is not None and name not in names() and name in encoders() else name
    entry(model)
    return model, {"model.name": Origin(name, "--models")}


def entrants_for(task: str, models: Sequence[str] | None) -> list[Entrant]:
    """Those that were named, or the ladder of the task and every model that was registered for it from outside."""
    if models is None:
        from regard.core.registry import MODELS, entry, names

        ladder = task_named(task).ladder
        others = [name for name in names() if name not in (*MODELS, *ladder) and entry(name).task == task]
        models = [*ladder, *others]
    found = [read_entrant(text, task) for text in models]
    labels = [one.label for one in found]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"--models: {label} is named twice; give each entrant its own settings")
    if not found:
        raise UsageError("--models: nothing to compare; name at least one model")
    return found


def modules_of(settings: Sequence[Settings]) -> list[str]:
    """Modules that another process imports to know the same models: those imported by name, and where models are."""
    found = {entry(one["model.name"]).preset.__module__: one["model.name"] for one in settings}
    if SCRIPT in found:
        raise UsageError(
            f"{found[SCRIPT]} is registered in the script itself, which workers do not run: put it into a module and "
            f"import that, or leave workers out"
        )
    own = __name__.partition(".")[0]
    return sorted({*imported(), *(module for module in found if module.partition(".")[0] != own)})


def common_size(settings: Sequence[Settings], spec: DataSpec | int, suitable: int) -> int:
    """The count of parameters for all: what suits the budget, within reason; 0 where all of them are fitted at once.

    Within reason is no more than the size of the first model whose width moves in steps, and no less than it has at a
    width of 48: a large vocabulary alone may take more than would suit. Heads want a width that they divide, so that
    such a model sets the size and the others, whose width is free, follow.
    """
    neural = [one for one in settings if one[START] is None and count(one, spec) is not None]
    stepping = [one for one in neural if "n_heads" in one.section("model")]
    return _common((stepping or neural)[0], spec, suitable) if neural else 0


def _common(reference: Settings, spec: DataSpec | int, suitable: int) -> int:
    """The count for all: that of the size a person asked for, or what suits the budget."""
    largest = count(reference, spec)
    assert largest is not None
    if WIDTH not in reference.section("model") or reference.table["model.size"].place != "default":
        return largest
    smallest = count(reference, spec, **{WIDTH: NARROW})
    assert smallest is not None
    return _nearest_width(reference, spec, min(largest, max(smallest, suitable)))[1]


def count(settings: Settings, spec: DataSpec | int, **changes: Any) -> int | None:
    """Parameters of the model that the settings describe; None of one that is fitted at once."""
    refuse_vectors(settings)
    config = model_config(settings, spec, **changes)
    return None if config.fitted else count_parameters(on_meta(config))


def sized(settings: Settings, spec: DataSpec | int, target: int) -> Size:
    """An entrant at the width whose parameters are nearest to the target; of an ensemble each part."""
    found, parts = _sized(settings, spec, target), settings["train.ensemble"]
    if found.fitted or parts == 1:
        return found
    return replace(found, parameters=parts * found.parameters, note=_together(found, parts, target))


def _sized(settings: Settings, spec: DataSpec | int, target: int) -> Size:
    own = count(settings, spec)
    if own is None:
        return Size(None, 0, FITTED)
    if settings[START] is not None:
        return Size(None, own, "has the size that it was found at", settings[START])
    if WIDTH not in settings.section("model"):
        return Size(None, own, "has no width to set")
    if settings.table[f"model.{WIDTH}"].place == "--models":
        return Size(None, own, "its width was set by hand")
    width, found = _nearest_width(settings, spec, target)
    apart = found / target - 1
    note = "" if abs(apart) <= CLOSE else f"is {apart:+.0%} off the common size, the nearest it has"
    return Size(width, found, note)


def _together(of_one: Size, parts: int, target: int) -> str:
    """How far the parts of an ensemble together are from the common size."""
    apart = parts * of_one.parameters / target - 1
    told = f"is an ensemble of {parts}, together {apart:+.0%} off the common size" if abs(apart) > CLOSE else ""
    return ", each of which ".join(filter(None, [told, of_one.note]))


def _nearest_width(settings: Settings, spec: DataSpec | int, target: int) -> tuple[int, int]:
    def counted(width: int) -> int | None:
        return count(settings, spec, **{WIDTH: width})

    return nearest_width(counted, target, lambda width, found: _worth(width, found, target))


def _worth(width: int, found: int, target: int) -> tuple[int, float]:
    """Smaller is better: close enough and round, as processors like widths, then nearest."""
    apart = abs(found / target - 1)
    return (-math.gcd(width, 8) if apart <= CLOSE else 0), apart
