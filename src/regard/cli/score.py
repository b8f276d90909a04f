"""`regard score`: how probable a text is, token by token."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.options import CommonOnDevice, command
from regard.cli.screen import given_text
from regard.errors import UsageError


def add_to(app: typer.Typer) -> None:
    command(app, "score")(score)


def score(
    run: Annotated[str, typer.Argument(help="A run folder.", metavar="RUN", show_default=False)],
    common: CommonOnDevice,
    text: Annotated[str | None, typer.Argument(help="The text; stdin without it.", metavar="TEXT")] = None,
) -> None:
    """Show how probable a text is, token by token.

    log p of every token, their chain-rule product, perplexity and bits per character.
    """
    given = given_text(text)
    if not given:
        raise UsageError('there is nothing to score: regard score RUN "some text", or a text on stdin')
    from regard.run.run import load

    scored = load(run, device=common.device or "auto").score(given)
    screen = common.screen
    screen.object(scored.to_dict())
    if not screen.quiet:
        screen.table(scored.columns, scored.rows())
    screen.line(scored.totals())
