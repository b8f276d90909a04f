"""Outcome: what became of one training, as plain values; one that was read from a file is checked value by value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.core.config import decode
from regard.errors import UsageError
from regard.tasks.class_report import RELIABILITY

LARGEST = 1 << 62
TRAINED: dict[str, Any] = {
    "path": str,
    "seed": int,
    "fold": int,
    "step": int,
    "tokens": int,
    "seconds": float,
    "reason": str,
    "best_step": int | None,
    "valid": float | None,
    "peak_memory": int | None,
}
MEASURED: dict[str, Any] = {
    "score": float,
    "speed": float,
    "speed_unit": str,
    "sample": str,
    "given": str,
    "state_bytes": int | None,
    "state_grows": bool,
    "flops_per_token": float | None,
}
SIDE_BY_SIDE = "side_by_side"  # how many trainings there were at the same time, where that was more than one
NOTES = "notes"  # what a person should know of how it was fitted
READS = "reads"  # what a model is given of a text: the tokens, or the text itself
# Of some tasks, and of some comparisons.
SOMETIMES: dict[str, Any] = {
    SIDE_BY_SIDE: int,
    NOTES: tuple[str, ...],
    READS: str,
    "right": tuple[bool | None, ...],
    "answers": tuple[str, ...],
    "inputs": tuple[str, ...],
    "truths": tuple[str, ...],
    "said": tuple[str, ...],
    RELIABILITY: tuple[tuple[float, float, int], ...],
}


def checked(outcome: Any, *, measured: bool) -> dict[str, Any]:
    """The outcome of a training, every value of its type. measured: whether it was used on the test part too."""
    found = _object(outcome, "outcome")
    hints = TRAINED | (MEASURED if measured else {}) | {key: SOMETIMES[key] for key in SOMETIMES if key in found}
    for key, hint in hints.items():
        if key not in found:
            raise UsageError(f"outcome.{key}: is missing")
        value = decode(found[key], hint, f"outcome.{key}")
        if isinstance(value, int) and abs(value) > LARGEST:
            raise UsageError(f"outcome.{key}: is no count")
    for point in _list(found.get("curve"), "outcome.curve"):
        if not _object(point, "outcome.curve").keys() >= {"step", "tokens", "seconds", "valid_loss"}:
            raise UsageError("outcome.curve: expected step, tokens, seconds and valid_loss")
        _check_numbers(point, float, "outcome.curve")
    if measured:
        _check_numbers(found.get("scores"), float | None, "outcome.scores")
        for name, part in _object(found.get("slices"), "outcome.slices").items():
            _check_numbers(part, float, f"outcome.slices.{name}")
        _check_scored(found.get("scored", []))
        _check_order(found.get("samples"))
    return dict(found)


def _check_scored(value: Any) -> None:
    """Documents of tokens, each with its probability."""
    for document in _list(value, "outcome.scored"):
        for pair in _list(document, "outcome.scored"):
            if len(_list(pair, "outcome.scored")) != 2:
                raise UsageError("outcome.scored: expected pairs of a token and its probability")
            decode(pair[0], str, "outcome.scored")
            decode(pair[1], float, "outcome.scored")


def _check_order(value: Any) -> None:
    """How samples come: the kind of sampler, rows and length of a batch; None of a model that is fitted at once."""
    if value is None:
        return
    if len(_list(value, "outcome.samples")) != 3:
        raise UsageError("outcome.samples: expected a kind, a batch size and a length")
    decode(value[0], str, "outcome.samples")
    decode(value[1:], tuple[int, ...], "outcome.samples")


def _check_numbers(value: Any, hint: Any, where: str) -> None:
    for key, number in _object(value, where).items():
        decode(number, hint, f"{where}.{key}")


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: expected an object, found {type(value).__name__}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"{where}: expected a list, found {type(value).__name__}")
    return value
