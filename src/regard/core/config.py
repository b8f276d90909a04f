"""Config: each part has a small frozen dataclass whose `build()` returns the part.

The config tree has the shape of the module tree. It travels as JSON: a part is an object whose `kind` names its class,
an unknown key is an error that names the nearest known one, and what was written is what is read.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from regard.errors import UsageError, nearest

KINDS: dict[str, type[Config]] = {}
LARGEST_FLOAT = 1 << 1000


@dataclass(frozen=True)
class Config:
    """Base of all configs. Subclasses name their `kind` in the class line: `class LstmConfig(Config, kind="lstm")`."""

    kind: ClassVar[str] = ""
    # Whether the part is fitted at once, see `regard.core.fitted`, instead of by steps along gradients.
    fitted: ClassVar[bool] = False

    def __init_subclass__(cls, kind: str = "", **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if kind:
            other = KINDS.get(kind)
            if other is not None and other.__qualname__ != cls.__qualname__:
                raise UsageError(f"config kind {kind!r} is taken by {other.__module__}.{other.__qualname__}")
            cls.kind = kind
            KINDS[kind] = cls

    def build(self) -> Any:
        """The part this config describes."""
        raise NotImplementedError(f"{type(self).__name__} must write build")

    def build_example(self) -> Any:
        """The part as the laws are checked on it: one that is fitted at once was fitted to something."""
        return self.build()

    def replace(self, **changes: Any) -> Self:
        """A copy with fields changed; an unknown field names the nearest one."""
        _refuse_unknown(changes, type(self), type(self).__name__)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, `kind` first."""
        return {"kind": self.kind} | {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def from_dict(data: Any, where: str = "config") -> Config:
    """The config that `to_dict` wrote. `where` names the place in errors, such as `model.stack.layers.0`."""
    if not isinstance(data, dict) or "kind" not in data:
        raise UsageError(f"{where}: expected an object with a 'kind', found {_brief(data)}")
    kind = data["kind"]
    cls = _kind(kind) if isinstance(kind, str) else None
    if cls is None:
        raise UsageError(
            f"{where}: unknown kind {_brief(kind)}{nearest(str(kind), KINDS)} (a part from outside the package must be "
            f"imported first: --import MODULE)"
        )
    values = {key: value for key, value in data.items() if key != "kind"}
    _refuse_unknown(values, cls, where)
    hints = typing.get_type_hints(cls)
    decoded = {key: decode(value, hints[key], f"{where}.{key}") for key, value in values.items()}
    missing = [f.name for f in dataclasses.fields(cls) if is_required(f) and f.name not in decoded]
    if missing:
        raise UsageError(f"{where}: {kind!r} needs {', '.join(missing)}")
    try:
        return cls(**decoded)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _kind(name: str) -> type[Config] | None:
    """The class of a kind; every built-in part is imported before one counts as unknown."""
    if name not in KINDS:
        from regard.core.registry import load_kinds

        load_kinds()
    return KINDS.get(name)


def check(condition: bool, message: str) -> None:
    """Refuse an impossible value with one line, at the moment the config is made."""
    if not condition:
        raise UsageError(message)


def is_required(field: dataclasses.Field[Any]) -> bool:
    """Whether a field must be said."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _refuse_unknown(values: dict[str, Any], cls: type[Config], where: str) -> None:
    known = {f.name for f in dataclasses.fields(cls)}
    for key in values:
        if key not in known:
            raise UsageError(f"{where}: unknown key {_brief(key)}{nearest(key, known)}")


def _plain(value: Any) -> Any:
    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return value


def decode(value: Any, hint: Any, where: str) -> Any:
    """A JSON value as the type that the field declares."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        rest = [argument for argument in arguments if argument is not type(None)]
        return from_dict(value, where) if isinstance(value, dict) else _first_fitting(value, rest, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise UsageError(f"{where}: expected a list, found {_brief(value)}")
        return tuple(decode(part, arguments[0], f"{where}.{i}") for i, part in enumerate(value))
    if origin is typing.Literal:
        if not isinstance(value, str) or value not in arguments:
            raise UsageError(f"{where}: {_brief(value)} is not a choice{nearest(str(value), map(str, arguments))}")
        return value
    if isinstance(hint, type) and issubclass(hint, Config):
        return from_dict(value, where)
    return scalar(value, hint, where)


def _first_fitting(value: Any, hints: list[Any], where: str) -> Any:
    """The value as the first of several types that takes it; what none takes is refused as the last one says."""
    for hint in hints[:-1]:
        try:
            return decode(value, hint, where)
        except UsageError:
            continue
    return decode(value, hints[-1], where)


def scalar(value: Any, hint: Any, where: str) -> Any:
    """`value` as a bool, int, float or str, strictly: 1.0 is no int, "3" is no number, True is no count."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_FLOAT:
        return float(value)
    if hint in (bool, int, float, str):
        wrong_bool = hint is not bool and isinstance(value, bool)
        if wrong_bool or not isinstance(value, hint):
            raise UsageError(f"{where}: expected {hint.__name__}, found {_brief(value)}")
    return value


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
