"""`regard explain`: how a model came to the probability of each token, as a calculation to follow."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.options import CommonOnDevice, command
from regard.cli.prompt import given_text
from regard.errors import UsageError


def add_to(app: typer.Typer) -> None:
    command(app, "explain")(explain)


def explain(
    run: Annotated[str, typer.Argument(help="The folder of an n-gram run.", metavar="RUN", show_default=False)],
    common: CommonOnDevice,
    text: Annotated[str | None, typer.Argument(help="The text; stdin without it.", metavar="TEXT")] = None,
    position: Annotated[
        int | None, typer.Option(help="Work out this token, from 1 on; the last is the end.", metavar="N")
    ] = None,
) -> None:
    """Show how a model came to the probability of each token.

    Which orders of an n-gram model matched; with --position, the calculation whose last line is the probability.
    """
    given = given_text(text)
    if not given:
        raise UsageError('there is nothing to explain: regard explain RUN "some text", or a text on stdin')
    from regard.run import load_text

    found = load_text(run, device=common.device or "auto").explain(given)
    screen = common.screen
    if position is not None:
        lines = found.steps(position)
        screen.object(found.token_dict(position))
        for line in lines[-1:] if screen.quiet else lines:
            screen.line(line)
        return
    screen.object(found.to_dict())
    if not screen.quiet:
        screen.table(found.columns, found.rows())
    screen.line(found.totals())
