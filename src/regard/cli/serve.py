"""`regard serve`: runs behind the API that clients of OpenAI's speak."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.options import CommonOnDevice, command
from regard.errors import UsageError

KEY = "REGARD_API_KEY"
LONGEST_KEYS = 1 << 16  # bytes of a file of keys


class Precision(Enum):
    """Number types in which texts are written."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@dataclass(frozen=True)
class Limits:
    """What clients may ask for."""

    key_file: Annotated[
        Path | None,
        typer.Option("--api-key", help=f"File of keys, one a line; or {KEY} in the environment.", metavar="FILE"),
    ] = None
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen beyond this machine without a key.")] = False
    rate: Annotated[int, typer.Option(help="Requests a minute of a key; 0 for any number.", metavar="N", min=0)] = 0
    queue: Annotated[int, typer.Option(help="Texts that may wait beside those in slots.", metavar="N", min=0)] = 256
    max_tokens: Annotated[int, typer.Option(help="Tokens of a text at most.", metavar="N", min=1)] = 4096
    timeout: Annotated[float, typer.Option(help="Seconds of a request at most.", metavar="S", min=1)] = 120.0


@dataclass(frozen=True)
class EngineOptions:
    """How models run."""

    slots: Annotated[int | None, typer.Option(help="Texts that step together; by memory unless told.", min=1)] = None
    memory: Annotated[
        str | None, typer.Option(help="Of all runs together, such as 8G; half of the machine's unless told.")
    ] = None
    precision: Annotated[
        Precision | None, typer.Option(help="Of language models that write; as they were saved unless told.")
    ] = None
    threads: Annotated[int | None, typer.Option(help="Of the engine; as many as cores unless told.", min=1)] = None
    idle: Annotated[float, typer.Option(help="Seconds after which an unused run is let go of.", min=1)] = 600.0
    log_prompts: Annotated[bool, typer.Option("--log-prompts", help="Write prompts into the log.")] = False


def add_to(app: typer.Typer) -> None:
    command(app, "serve")(serve)


def serve(
    common: CommonOnDevice,
    limits: Limits,
    engine: EngineOptions,
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run folders; those under ./runs without any.", metavar="[RUN]...")
    ] = None,
    host: Annotated[str, typer.Option(help="Beyond this machine a key is needed.", metavar="NAME")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free one.", metavar="N")] = 8000,
) -> None:
    """Answer over HTTP, as OpenAI's API does, with runs of any task.

    Texts are written side by side and streamed. /docs lists what may be asked, / is a page to try it. A log goes to
    stderr; Ctrl-C or SIGTERM ends it when all are answered.
    """
    require_extra()
    if not 0 <= port < 65536:
        raise UsageError(f"--port: expected a number from 0 to 65535, found {port}")
    from regard.serving.shelf import found_runs

    paths = found_runs(runs or [])
    if not paths:
        raise UsageError("there is no run to serve under ./runs: name one, or train one first")
    from regard.serving.http.names import names_of
    from regard.serving.http.server import serve as listen
    from regard.serving.http.settings import Settings

    settings = Settings(
        names_of(paths.values()),
        host,
        port,
        keys_of(limits.key_file),
        *(limits.rate, limits.queue, limits.max_tokens, limits.timeout),
        logs=not common.quiet,
        logs_prompts=engine.log_prompts,
        memory=bytes_of(engine.memory),
        slots=engine.slots,
        precision=engine.precision and engine.precision.value,
        threads=engine.threads,
        device=common.device or "auto",
        idle=engine.idle,
        plugins=common.plugins,
    )
    if not (settings.is_local or settings.keys or limits.insecure):
        raise UsageError(
            f"--host {host} can be reached from elsewhere: give a key with --api-key FILE or {KEY}, or say --insecure"
        )

    names = list(settings.paths)
    listen(settings, lambda url, models, failed: _tell(common, url, names, models, failed))


def require_extra() -> None:
    """Refuse to go on without what the extra brings."""
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageError(f"serve needs {' and '.join(missing)}: pip install 'regard[serve]'")


def keys_of(file: Path | None) -> tuple[str, ...]:
    """The keys of a file, or that of the environment."""
    if file is None:
        own = os.environ.get(KEY, "").strip()
        return (own,) if own else ()
    try:
        with file.open("rb") as stream:
            content = stream.read(LONGEST_KEYS).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--api-key: {file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found = tuple(line.strip() for line in content.splitlines() if line.strip())
    if not found:
        raise UsageError(f"--api-key: there is no key in {file}")
    return found


def bytes_of(size: str | None) -> int | None:
    """
    >>> bytes_of("8G"), bytes_of("512M"), bytes_of(None)
    (8589934592, 536870912, None)
    """
    if size is None:
        return None
    number, unit = (size[:-1], size[-1].upper()) if size and not size[-1].isdigit() else (size, "")
    powers = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
    if not number.isdigit() or unit not in powers or int(number) == 0:
        raise UsageError(f"--memory: expected a size such as 8G or 512M, found {size!r}")
    return int(number) << powers[unit]


def _tell(common: CommonOnDevice, url: str, names: list[str], models: dict[str, Any], failed: dict[str, str]) -> None:
    for name, why in failed.items():
        common.screen.note(f"{name} is not served as long as it cannot be loaded: {why}")
    names = [name for name in names if name not in failed]
    common.screen.object({"url": url, "models": sorted(names), "failed": failed})
    common.screen.line(url if common.quiet else _told(url, names, models))
    sys.stdout.flush()


def _told(url: str, names: list[str], models: dict[str, Any]) -> str:
    slots = ", ".join(f"{name} with {told['slots']} slots" for name, told in models.items() if told["slots"])
    others = [name for name in names if name not in models]
    more = f"; {', '.join(others)} when asked for" if others else ""
    return f"{url} serves {slots or ', '.join(models)}{more}; Ctrl-C ends it"
