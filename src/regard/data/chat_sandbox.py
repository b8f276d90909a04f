"""The process that renders one chat template: a question as JSON on standard input, an answer on standard output.

Nothing but jinja2 is imported here, so that there is nothing else to reach: its own, or the one that who asked has.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import datetime
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from typing import Any


def main() -> None:
    asked = json.load(sys.stdin)
    _limit(asked["memory"], asked["seconds"])
    sys.meta_path.append(_Given(asked["folders"]))
    try:
        answer = {"text": _rendered(asked["template"], asked["values"], asked["longest"])}
    except ImportError as error:
        answer = {"lacks": str(error)}
    except MemoryError:
        answer = {"error": "it asks for too much memory"}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    json.dump(answer, sys.stdout)


class _Given(MetaPathFinder):
    """Finds what an isolated process lacks where who asked has it: these packages alone, and no other of the folder."""

    def __init__(self, folders: dict[str, str]) -> None:
        self.folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return PathFinder.find_spec(name, [self.folders[name]]) if path is None and name in self.folders else None


def _rendered(template: str, values: dict[str, Any], longest: int) -> str:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}`, which marks what the model says and changes no text."""

        tags = {"generation"}  # noqa: RUF012  # as the base class has it

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def as_json(value: Any, ensure_ascii: bool = False, indent: Any = None, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = as_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    parts, size = [], 0
    for part in environment.from_string(template).generate(**values):
        size += len(part)
        if size > longest:
            raise ValueError(f"its text is longer than {longest:,} characters")
        parts.append(part)
    return "".join(parts)


def _limit(memory: int, seconds: int) -> None:
    """As much memory and time as the system can be told to give; elsewhere who asked waits no longer than that."""
    try:
        import resource
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_FSIZE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
