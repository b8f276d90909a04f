"""`regard new`: a commented recipe to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Common, command
from regard.errors import UsageError


def add_to(app: typer.Typer) -> None:
    command(app, "new")(new)


def new(
    common: Common,
    file: Annotated[str, typer.Argument(help="Where to write it; - for stdout.", metavar="FILE")] = "recipe.toml",
    recipe: Annotated[
        str | None, typer.Option(help="One of the package (regard list), to change it.", metavar="NAME")
    ] = None,
) -> None:
    """Write a commented recipe."""
    from regard.run.recipe import shipped_text
    from regard.run.template import recipe_text

    text = recipe_text() if recipe is None else shipped_text(recipe)
    screen = common.screen
    if file == "-":
        screen.object({"recipe": text})
        screen.lines(text.rstrip("\n"))
        return
    path = Path(file).expanduser()
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as out:
            out.write(text)
    except FileExistsError:
        raise UsageError(f"{path}: is there already; choose another name") from None
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{path}: there is no folder {path.parent}") from None
    screen.object({"recipe": str(path)})
    if not screen.quiet:
        screen.line(str(path))
        screen.line(f"regard train --recipe {path}")
