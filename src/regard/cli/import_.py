"""`regard import`: a model that somebody else has trained, as a run."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli.options import Common, command


def add_to(app: typer.Typer) -> None:
    command(app, "import")(import_)


def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder, FILE.gguf, vectors.txt, FILE.npz, g2p: or hf:OWNER/NAME.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    out: Annotated[str, typer.Option(help="Folder of the run.", metavar="RUN", show_default=False)],
    common: Common,
    weights: Annotated[
        str | None,
        typer.Option(help="int8: 8 bits a weight. blocks: as in FILE.gguf.", metavar="int8|blocks", show_default=False),
    ] = None,
) -> None:
    """Take over a model that somebody else has trained.

    A folder with config.json, safetensors and a tokenizer, a GGUF file, a file of word vectors (GloVe, fastText) or the
    network of g2p-en becomes a run like one of your own.
    Architectures: docs/weights.md. No pickle is read and no code of a folder is run.
    """
    from dataclasses import asdict

    from regard.interop.import_run import import_run

    found = import_run(source, out, weights=weights)
    common.screen.object(asdict(found) | {"path": str(found.path)})
    common.screen.line(f"{found.path}: {found.architecture}, {found.parameters:,} parameters, task {found.task}")
    for part in found.lost:
        common.screen.note(f"left out: {part}")
