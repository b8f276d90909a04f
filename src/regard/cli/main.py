"""The `regard` command. Nothing here imports torch: a command does, when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from regard.cli import bench, check, evaluate, generate, list_, new, score, show, train
from regard.cli.failure import report
from regard.cli.options import Plugins, import_all

app = typer.Typer(
    help="Every sequence model from counting to attention and state spaces behind one contract.",
    epilog="Start with: regard train my.txt",
    rich_markup_mode=None,  # rich help alone costs 0.14 s
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
for part in (train, generate, score, evaluate, check, list_, show, new, bench):
    part.add_to(app)


def show_version(wanted: bool) -> None:
    if wanted:
        from regard import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[  # noqa: ARG001  # acted on by its callback
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=show_version)
    ] = False,
    plugins: Plugins = [],  # noqa: B006  # typer copies it
) -> None:
    """Every sequence model from counting to attention and state spaces behind one contract."""
    import_all(plugins)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if argv is None:
        use_utf8()
        argv = sys.argv[1:]
    # Threads that wait by spinning make two busy cores 13 to 28 times slower. Read once, when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if any(name.endswith("_COMPLETE") and name.startswith("_REGARD") for name in os.environ):
        app()
    root = typer.main.get_command(app)
    try:
        try:
            with root.make_context("regard", with_values(argv) or ["--help"]) as context:
                root.invoke(context)
        except typer.Exit as leave:
            return leave.exit_code
        finally:
            sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        return report(error, debug="--debug" in argv)
    return 0


def with_values(argv: Sequence[str]) -> list[str]:
    """The words with `--resume` alone written as `--resume=last`: its value may be left out, which typer cannot say."""
    following = [*argv[1:], ""]
    return [
        f"{word}=last" if word == "--resume" and after != "auto" else word
        for word, after in zip(argv, following, strict=False)
    ]


def use_utf8() -> None:
    """Start again in UTF-8 mode where the locale is another: text, paths and prompts are UTF-8 everywhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller, as in `regard list >&-`
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # lives as long as the process
    encodings = {sys.getfilesystemencoding(), sys.stdout.encoding, sys.stderr.encoding}
    if encodings != {"utf-8"} and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.environ.pop("PYTHONIOENCODING", None)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
