"""Like: a new run with the settings of another, for longer or at another size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from regard.core.registry import entry
from regard.data.split import FOLD
from regard.errors import UsageError
from regard.run.dataset import SMALL
from regard.run.paths import saved_settings
from regard.run.rate import is_scaled, moved
from regard.run.settings import COMPARISON, RATE, Layer, Origin, resolve

WIDTH, SIZE, VALID, REFIT = "model.d_model", "model.size", "data.valid", "train.refit"


def settings_like(path: Path, given: Layer) -> Layer:
    """What somebody or a comparison has set in the run at `path`, as the lowest layer of those `given`.

    Another size takes the width of that size, and the rate that a comparison found goes with it (see `rate`). Of a
    fold nothing is kept: the new run has the usual split; nor of what a comparison left out so that all learn the same.
    """
    saved = saved_settings(path)
    _refuse_another(path, saved, given)
    usual = _usual_places(saved)
    layer = {key: one for key, one in saved.items() if not (one.place in usual or _is_rate_of_model(key, one))}
    if str(layer.get(VALID, Origin("", "")).value).startswith(FOLD):
        del layer[VALID]
    if layer.get(REFIT, Origin(None, "")).place == COMPARISON:
        del layer[REFIT]
    if SIZE in given and layer.get(WIDTH, Origin(None, "")).place == COMPARISON:
        old, name = layer.pop(WIDTH).value, saved["model.name"].value
        new = resolve(layer, given)[WIDTH]
        if RATE in layer and layer[RATE].place == COMPARISON:
            layer[RATE] = replace(layer[RATE], value=moved(layer[RATE].value, entry(name), old, new))
    return {key: Origin(one.value, f"run {path}") for key, one in layer.items()}


def _usual_places(saved: Layer) -> set[str]:
    """Where values come from that nobody chose: the package, its size, its model, the smallness of a text.

    The encoder that somebody named as the model (`model lstm as an encoder`) is none of these.
    """
    return {"default", SMALL, f"size {saved['model.size'].value}", f"model {saved['model.name'].value}"}


def _is_rate_of_model(key: str, one: Origin) -> bool:
    """Whether a value is the model's own rate at the width of the run; the new run has that of its own width."""
    return key == RATE and is_scaled(one.place)


def _refuse_another(path: Path, saved: Layer, given: Layer) -> None:
    name = saved["model.name"].value
    if "model.name" in given and given["model.name"].value != name:
        raise UsageError(f"--like {path}: is a run of {name}; leave out --model, or --like")
