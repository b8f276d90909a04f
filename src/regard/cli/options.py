"""Options that several commands share, and the decorator that turns a typed function into a command.

A parameter whose type is a dataclass stands for its fields: each becomes an option of its own, so that a group of
options is written once and a command keeps a short signature.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.screen import Screen
from regard.core.device import DEVICES, is_device_name
from regard.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.studies.pool.opening import SideBySide

Plugins = Annotated[
    list[str], typer.Option("--import", metavar="MODULE", help="Import a module that registers something. Repeatable.")
]
HELP = {"help_option_names": ["--help", "-h"]}


@dataclass(frozen=True)
class Common:
    """What every command understands."""

    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False
    plugins: Plugins = field(default_factory=list)

    @property
    def screen(self) -> Screen:
        return Screen(json=self.json, quiet=self.quiet)


@dataclass(frozen=True)
class CommonOnDevice(Common):
    """The same for a command that runs a model."""

    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.", metavar="NAME")] = None

    def __post_init__(self) -> None:
        if self.device is not None and not is_device_name(self.device):
            raise UsageError(f"--device: unknown device {self.device!r}{nearest(self.device, DEVICES)}")


@dataclass(frozen=True)
class CommonWithChance(CommonOnDevice):
    """The same for a command that runs a model and draws."""

    seed: Annotated[int | None, typer.Option(help="Seed of everything random.", metavar="N")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise UsageError(f"--seed: expected a whole number from 0 to 2^63 - 1, found {self.seed}")


@dataclass(frozen=True)
class WorkerFlags:
    """Where many trainings are made."""

    workers: Annotated[
        int | None, typer.Option(help="Trainings side by side, each in a process of its own.", metavar="N")
    ] = None
    ray: Annotated[
        str | None, typer.Option(help="Trainings on a Ray cluster: auto, or HOST:PORT.", metavar="ADDRESS")
    ] = None

    def side_by_side(self, screen: Screen) -> SideBySide:
        """The same as a value; what is to be known of it is told."""
        from regard.studies.pool.opening import SideBySide

        found = SideBySide(self.workers, self.ray)
        if found.note:
            screen.note(found.note)
        return found


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the decorated function to `app`, its dataclass parameters spread out as options."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        app.command(name, context_settings=HELP)(spread(function))
        return function

    return add


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with the fields of its dataclass parameters in their place."""
    hints = typing.get_type_hints(function, include_extras=True)
    own: list[inspect.Parameter] = []  # what a command has for itself comes first in its help
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            groups[parameter.name] = hint
        else:
            own.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
    for group in sorted(groups.values(), key=lambda group: issubclass(group, Common)):
        own += _field_parameters(group)

    @wraps(function)
    def call(**values: Any) -> Any:
        built = {
            name: group(**{f.name: values.pop(f.name) for f in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        import_all(next((part.plugins for part in built.values() if isinstance(part, Common)), []))
        return function(**values, **built)

    call.__signature__ = inspect.Signature(own)  # pyright: ignore[reportAttributeAccessIssue]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return call


def import_all(modules: list[str]) -> None:
    """Import what `--import` names, so that it can register itself."""
    if modules:
        from regard.core.plugin import import_module

        for module in modules:
            import_module(module)


def _field_parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(group, include_extras=True)
    found = []
    for part in dataclasses.fields(group):
        default = part.default if part.default_factory is dataclasses.MISSING else part.default_factory()
        keyword = inspect.Parameter.KEYWORD_ONLY
        found.append(inspect.Parameter(part.name, keyword, default=default, annotation=hints[part.name]))
    return found
