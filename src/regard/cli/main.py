"""The `regard` command. Nothing here imports torch: a command does, when it runs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer

from regard.cli import (
    bench,
    check,
    compare,
    doctor,
    evaluate,
    explain,
    export,
    generate,
    import_,
    inspect,
    lab,
    lecture,
    list_,
    new,
    predict,
    reproduce,
    score,
    serve,
    show,
    train,
)
from regard.cli.failure import report
from regard.cli.options import HELP
from regard.training.interrupt import SIGNALS, ended_by_exception

ABOUT = "Every sequence model from counting to attention and state spaces behind one contract."
COMPLETION = ("--install-completion", "--show-completion")
SIGNALLED = {128 + number for number in SIGNALS}
EPILOG = f"Start with: regard compare my.txt. For completion in your shell: regard {COMPLETION[0]}"


def application(*, completion: bool = False) -> typer.Typer:
    """All commands, and what typer adds for completion when it is asked for."""
    # Help drawn by rich costs 0.14 s.
    app = typer.Typer(
        epilog=EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=completion,
        help=ABOUT,
        context_settings=HELP,
    )
    app.callback()(every_command)
    first = (compare, train, generate, predict, score, explain, lab, serve, evaluate, import_, export, reproduce)
    for part in (*first, lecture, check, inspect, list_, show, new, bench, doctor):
        part.add_to(app)
    return app


def show_version(wanted: bool) -> None:
    if wanted:
        from regard.core.version import __version__

        print(__version__)
        raise typer.Exit


def every_command(
    version: Annotated[  # acted on by its callback
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=show_version)
    ] = False,
) -> None:
    pass


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without `argv` that of this process, which then ends."""
    if argv is not None:
        return run(argv)
    use_utf8()
    if "WORLD_SIZE" in os.environ:  # one of many: torch would advise each of them on how it is used
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    with ended_by_exception():
        code = run(sys.argv[1:])
    leave(code)
    return code


def leave(code: int) -> None:
    """End at once after a signal, as taking torch down takes half a second, and where other threads are at work.

    Inside torch or a tokenizer they cannot be interrupted, and would meet an interpreter that is being taken down. One
    of many processes would wait for those that it is connected to.
    """
    if threading.active_count() == 1 and code not in SIGNALLED and "WORLD_SIZE" not in os.environ:
        return
    from regard.storage.temporary import close_all

    close_all()
    give_back = getattr(sys.modules.get("multiprocessing.util"), "_run_finalizers", None)
    if give_back is not None:
        # Semaphores; else the process that watches over them tells of each.
        with contextlib.suppress(OSError, ValueError):
            give_back(0)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(argv: Sequence[str]) -> int:
    """Run one command; whatever it fails with is a line and an exit code."""
    if "_REGARD_COMPLETE" in os.environ or (argv and argv[0] in COMPLETION):
        application(completion=True)(prog_name="regard")
    try:
        try:
            call(written_out(argv))
        except typer.Exit as ended:
            return ended.exit_code
        finally:
            sys.stdout.flush()
    except BaseException as error:
        return report(error, debug="--debug" in argv)
    return 0


def call(words: list[str]) -> None:
    """Parse and run. A known command is called by itself: the options of the whole would load pydantic for nothing."""
    root: Any = typer.main.get_command(application())
    command = root.commands.get(words[0]) if words else None
    name, rest = ("regard", words or ["--help"]) if command is None else (f"regard {words[0]}", words[1:])
    command = command or root
    rest = with_values(rest, valued(command))
    # What was typed, for a command that starts itself again.
    with command.make_context(name, rest, obj=words) as context:
        command.invoke(context)


def valued(command: Any) -> set[str]:
    """The options of a command that take a value."""
    return {name for one in command.params if not getattr(one, "is_flag", False) for name in one.opts}


def written_out(argv: Sequence[str]) -> list[str]:
    """The words as typer wants them: `--import MODULE` may stand before the command.

    >>> written_out(["--import", "toy", "train", "--resume", "--out", "x"])
    ['train', '--import', 'toy', '--resume', '--out', 'x']
    """
    words, plugins = list(argv), list[str]()
    while words and words[0].partition("=")[0] == "--import":
        taken = 1 if "=" in words[0] else 2
        plugins, words = plugins + words[:taken], words[taken:]
    return words[:1] + plugins + words[1:] if words else plugins


def with_values(words: Sequence[str], options: Collection[str]) -> list[str]:
    """The same where `--resume` takes a value, which it may stand without: typer cannot say that.

    >>> with_values(["--resume", "--out", "x"], ["--resume", "--out"])
    ['--resume=last', '--out', 'x']
    """
    bare = "--resume" if "--resume" in options else None
    return [
        f"{word}=last" if word == bare and words[place + 1 : place + 2] != ["auto"] else word
        for place, word in enumerate(words)
    ]


def use_utf8() -> None:
    """Text, paths and prompts are UTF-8 everywhere: where the locale is another the command starts again so.

    Where paths are UTF-8 as they are, as on Windows, it is enough to tell the streams.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller, as in `regard list >&-`
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # lives as long as the process
    if sys.getfilesystemencoding() == "utf-8":
        for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "surrogateescape"), (sys.stderr, None)):
            if stream.encoding != "utf-8" and isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors=errors)
    elif os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.environ.pop("PYTHONIOENCODING", None)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
