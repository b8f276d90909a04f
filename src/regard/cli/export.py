"""`regard export`: a run in the format of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Common, command


def add_to(app: typer.Typer) -> None:
    command(app, "export")(export)


def export(
    run: Annotated[str, typer.Argument(help="The folder of a run.", metavar="RUN", show_default=False)],
    out: Annotated[
        str,
        typer.Argument(
            help="A new folder (hf, onnx), or FILE.gguf, FILE.safetensors, FILE.arpa, also .gz or .xz.",
            metavar="DEST",
            show_default=False,
        ),
    ],
    common: Common,
    to: Annotated[
        str | None,
        typer.Option(help="hf, onnx, gguf, safetensors or arpa; told from the ending of DEST where it can be."),
    ] = None,
    licence: Annotated[str | None, typer.Option(help="Under which it is passed on, for the model card.")] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Tokens for which an ONNX state has room.")] = None,
    half: Annotated[bool, typer.Option("--half", help="GGUF in numbers of 16 bits.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what was exported there before.")] = False,
) -> None:
    """Write a run for other programs.

    hf: a folder that transformers loads with equal logits. onnx: graphs for onnxruntime, of every neural model. gguf:
    for llama.cpp. safetensors: weights by readable names. arpa: an n-gram model, for KenLM and SRILM. What goes where,
    and what it loses: docs/weights.md.
    """
    from dataclasses import asdict

    from regard.interop.export_run import Asked, export_run, format_of
    from regard.run.run import load

    format_of(Path(out), to)  # before a model is loaded
    found = export_run(load(run, device="cpu"), out, to, Asked(licence, force, length, half))
    for note in found.notes:
        common.screen.note(note)
    told = {key: value for key, value in asdict(found).items() if value is not None and key not in ("path", "notes")}
    common.screen.object({"file": str(found.path)} | told)
    kind = "" if found.architecture is None else f"{found.architecture}, "
    room = "" if found.room is None else f", room for {found.room:,} tokens"
    checked = "" if found.difference is None else f", largest difference {found.difference:.1e}"
    common.screen.line(f"{found.path}: {kind}{found.bytes:,} bytes{room}{checked}")
