"""`regard export`: a run in the format of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Common, command
from regard.errors import UsageError


def add_to(app: typer.Typer) -> None:
    command(app, "export")(export)


def export(
    run: Annotated[str, typer.Argument(help="The folder of a run.", metavar="RUN", show_default=False)],
    out: Annotated[str, typer.Argument(help="FILE.arpa, also .gz or .xz.", metavar="FILE", show_default=False)],
    common: Common,
) -> None:
    """Write a run for other programs.

    An n-gram model as an ARPA file, which KenLM and SRILM read. generate, score, evaluate and explain take FILE.arpa
    in the place of a run.
    """
    path = Path(out).expanduser()
    if not path.name.endswith((".arpa", ".arpa.gz", ".arpa.xz")):
        raise UsageError(f"{out}: a run is exported as FILE.arpa, FILE.arpa.gz or FILE.arpa.xz")
    if not path.parent.is_dir():
        raise UsageError(f"{out}: there is no folder {path.parent}")
    from regard.interop.arpa_write import write_arpa
    from regard.models.ngram import NgramModel
    from regard.run.run import load
    from regard.tasks.verbs import Scores

    loaded = load(run, device="cpu")
    loaded.able(Scores)
    if not isinstance(loaded.model, NgramModel):
        raise UsageError(f"{run}: ARPA files hold n-gram models, and this is a {loaded.config['model']['name']} model")
    write_arpa(loaded.model, loaded.tokenizer, path)
    if loaded.tokenizer.kind != "words":
        common.screen.note(f"its words are {loaded.tokenizer.kind}: who reads it must split text in the same way")
    elif loaded.config["data"].get("documents") != "line":
        common.screen.note("its sentences are not lines: count with data.documents=line for other programs")
    size = path.stat().st_size
    common.screen.object({"file": str(path), "bytes": size})
    common.screen.line(f"{path}: {size:,} bytes")
