"""What config.json of a run may say: the type of every value that somebody reads, checked when the file is read.

A part that is not there is left out, as runs of an earlier regard have fewer; one that is there must be what it is
taken for. The tree below `model.config` is decoded by `regard.core.config` when the model is built.
"""

from __future__ import annotations

from typing import Any

from regard.core.config import decode
from regard.core.fitted import TOLD
from regard.data import settings as data_settings
from regard.errors import UsageError
from regard.storage.format import FIRST, FORMAT_VERSION, newer
from regard.training import settings as train_settings

SETTINGS = ("model", "data", "train")
KEPT = "int8"  # in which linear maps may be kept, beside float32 and blocks, whose kinds are said by the map
# Settings that an earlier regard had under another name (training/settings.py).
PRESENT = {f"train.{train_settings.FORMER}": "train.track"}
# What a run notes of its data beside the settings, and what was fitted.
IDENTITY = ("name", "hash", "tokenizer")
FIT: dict[str, Any] = {"tokens": int, "notes": tuple[str, ...]}
BEGUN = "begun"  # what was solved for before the first step
# What was counted of the model, for the eye alone.
STATE: dict[str, Any] = {"bytes": int, "grows": bool, "length": int}
# Facts that commands show where a model tells them.
SHOWN: dict[str, Any] = {TOLD: str, "kept": tuple[int, ...], "n_grams": tuple[int, ...], "quantised": bool}


def checked_config(content: Any) -> dict[str, Any]:
    """The config of a run, with the defaults of training settings that it does not name; what is none is refused."""
    config = dict(_object(content, ""))
    for section in (*SETTINGS, "origins", "environment"):
        config[section] = _object(config.get(section, {}), section)
    version = decode(config.get("format_version", FIRST), int, "format_version")
    if version > FORMAT_VERSION:
        raise UsageError(f"format_version: {newer(version)}")
    for key in ("name", "size"):
        decode(config["model"].get(key, ""), str, f"model.{key}")
    if config["model"].get("weights", KEPT) != KEPT:
        for name, kind in _object(config["model"]["weights"], "model.weights").items():
            decode(kind, str, f"model.weights.{name}")
    for key in ("settings", "config"):
        _object(config["model"].get(key, {}), f"model.{key}")
    data_settings.from_dict(config["data"])
    for key in IDENTITY:
        decode(config["data"].get(key, ""), str, f"data.{key}")
    config["train"] = train_settings.from_dict(config["train"]).to_dict()
    config["origins"] = {PRESENT.get(str(key), str(key)): origin for key, origin in config["origins"].items()}
    for key, origin in config["origins"].items():
        if key.partition(".")[0] not in SETTINGS:
            raise UsageError(f"origins.{key}: is no setting of {', '.join(SETTINGS)}")
        decode(origin, str, f"origins.{key}")
    if "sizes" in config:
        _check_sizes(_object(config["sizes"], "sizes"))
    for key, told in _object(config.get("imported", {}), "imported").items():
        decode(told, str, f"imported.{key}")
    if "fit" in config:
        _check_fit(_object(config["fit"], "fit"))
    if BEGUN in config:
        decode(_object(config[BEGUN], BEGUN).get("notes", []), FIT["notes"], f"{BEGUN}.notes")
    return config


def notes_of(config: dict[str, Any]) -> list[str]:
    """What a person should know of how a run was fitted, or of what was solved for before its first step."""
    return [note for part in ("fit", BEGUN) for note in config.get(part, {}).get("notes", ())]


def _check_sizes(sizes: dict[str, Any]) -> None:
    parts = [("sizes.parameters", sizes.get("parameters"), int)]
    if sizes.get("state") is not None:
        state = _object(sizes["state"], "sizes.state")
        parts += [(f"sizes.state.{key}", state.get(key), hint) for key, hint in STATE.items()]
    for where, value, hint in parts:
        if decode(value, hint, where) < 0:
            raise UsageError(f"{where}: is a count, found {value}")


def _check_fit(fit: dict[str, Any]) -> None:
    for key, hint in FIT.items():
        if key not in fit:
            raise UsageError(f"fit: {key} is missing")
        decode(fit[key], hint, f"fit.{key}")
    for key, hint in SHOWN.items():
        if key in fit:
            decode(fit[key], hint, f"fit.{key}")
    if min(fit.get("kept", [0]), default=-1) < 0 or fit["tokens"] < 0:
        raise UsageError("fit.kept and fit.tokens are counts")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where + ': ' if where else ''}expected an object, found {type(value).__name__}")
    return value
