"""A run in the format of other programs: `regard export`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import UsageError, nearest
from regard.interop.export_folder import (
    mark,
    new_file,
    new_folder,
    require_free,
    size_of,
    told_of,
    write_file,
    write_files,
)
from regard.interop.model_card import model_card

if TYPE_CHECKING:
    from regard.run.run import Run

ENDINGS = {
    ".arpa": "arpa",
    ".arpa.gz": "arpa",
    ".arpa.xz": "arpa",
    ".gguf": "gguf",
    ".safetensors": "safetensors",
}


@dataclass(frozen=True)
class Asked:
    """How something is to be written. licence: for the card. room: tokens of a growing state. half: float16."""

    licence: str | None = None
    force: bool = False
    room: int | None = None
    half: bool = False


@dataclass(frozen=True)
class Exported:
    """What an export came to.

    difference  the largest one that was found on reading it back, or on running it.
    room        tokens that a growing state holds.
    notes       what people are told.
    """

    path: Path
    to: str
    bytes: int
    architecture: str | None = None
    difference: float | None = None
    room: int | None = None
    notes: tuple[str, ...] = ()


def format_of(path: Path, to: str | None) -> str:
    """The format that was named, or that the ending of a file tells."""
    if to is not None:
        if to not in FORMATS:
            raise UsageError(f"--to {to}: unknown format{nearest(to, FORMATS)}; known are {', '.join(FORMATS)}")
        return to
    for ending, name in ENDINGS.items():
        if path.name.lower().endswith(ending):
            return name
    files = "FILE.gguf, FILE.safetensors or FILE.arpa"
    raise UsageError(f"{path}: its name tells no format; say --to hf or --to onnx, or name {files}")


def export_run(run: Run, dest: str | Path, to: str | None = None, asked: Asked | None = None) -> Exported:
    """Write `run` to `dest`, a file or a folder."""
    asked, path = asked or Asked(), Path(dest).expanduser()
    name = format_of(path, to)
    if asked.half and name != "gguf":
        raise UsageError(f"--half: only GGUF files have numbers of 16 bits, and this is {name}")
    if asked.room is not None and name != "onnx":
        raise UsageError(f"--length: only ONNX graphs have a state of fixed length, and this is {name}")
    require_free(path, asked.force)
    return FORMATS[name](run, path, asked)


def _neural(run: Run, to: str) -> Run:
    """The run with the numbers that its weights stand for, in float32; one that has no weights is refused."""
    from regard.layers.few_bits import widened

    if run.fitted:
        told = f"{run.config['model']['name']} is counted or solved for and has no such weights"
        raise UsageError(f"{run.path}: --to {to} is for neural models, and {told}; n-gram models go to FILE.arpa")
    wide = copy.copy(run)
    wide.model = widened(run.model)
    return wide


def _hf(run: Run, path: Path, asked: Asked) -> Exported:
    from regard.interop.hf_write import OutgoingModel

    model = OutgoingModel(_neural(run, "hf"))
    with new_folder(path, asked.force) as folder:
        write_files(folder, dict(model.files()))
        difference = model.largest_difference(folder)
        facts = {"run": run.path.name, "architecture": model.kind, "difference": difference}
        notes = [f"`transformers` loads it as {model.settings['architectures'][0]}; `regard import` reads it back."]
        _described(run, folder, "hf", facts, asked, notes)
    return Exported(path, "hf", size_of(path), model.kind, difference)


def _onnx(run: Run, path: Path, asked: Asked) -> Exported:
    from regard.interop.onnx_graph import graphs_of
    from regard.interop.onnx_write import facts_of, largest_difference, require_onnx, write_graph

    run = _neural(run, "onnx")
    require_onnx()
    with told_of(run.path):
        graphs = graphs_of(run.model, run.processor.spec, asked.room)
    with new_folder(path, asked.force) as folder:
        for graph in graphs.graphs:
            write_graph(graph, folder / f"{graph.name}.onnx")
        difference = largest_difference(graphs, folder)
        facts = facts_of(graphs) | {"run": run.path.name, "difference": difference}
        files, notes = _processor_files(run)
        write_files(folder, files)
        if graphs.room is not None:
            notes.append(f"Its state has room for {graphs.room} tokens.")
        notes.append(f"Graphs: {', '.join(graphs.named)}; export.json names what goes in and comes out.")
        _described(run, folder, "onnx", facts, asked, notes)
    return Exported(path, "onnx", size_of(path), None, difference, graphs.room)


def _processor_files(run: Run) -> tuple[dict[str, Any], list[str]]:
    """What turns text into ids: as other programs read it where they can, else as the run has it."""
    from regard.interop.hf_tokenizer_write import hf_tokenizer
    from regard.tasks.processor import TOKENIZER, Tokenizes

    files = {name: [content] for name, content in run.processor.files().items()}
    if not isinstance(run.processor, Tokenizes):
        return files, ["Texts become numbers as `regard` does it: its files are here as in the run."]
    try:
        made = hf_tokenizer(run.processor.tokenizer, framed=False, length=run.config["train"]["length"])
    except UsageError as error:
        return files, [f"{error}: tokenizer.json is that of `regard`."]
    files |= {name: [content] for name, content in made.files().items()}
    return files, [f"{TOKENIZER} is one of Hugging Face `tokenizers`."]


def _gguf(run: Run, path: Path, asked: Asked) -> Exported:
    from regard.interop.gguf_write import OutgoingGguf

    model = OutgoingGguf(_neural(run, "gguf"), half=asked.half, licence=asked.licence)
    if path.suffix.lower() == ".gguf":
        with new_file(path, asked.force, model.chunks()) as file:
            difference = model.largest_difference(file)
        return Exported(path, "gguf", size_of(path), model.kind, difference)
    with new_folder(path, asked.force) as folder:
        file = folder / "model.gguf"
        write_files(folder, {file.name: model.chunks()})
        difference = model.largest_difference(file)
        facts = {"run": run.path.name, "architecture": model.kind, "difference": difference}
        _described(run, folder, "gguf", facts, asked, ["llama.cpp reads model.gguf; `regard import` reads it back."])
    return Exported(path, "gguf", size_of(path), model.kind, difference)


def _safetensors(run: Run, path: Path, asked: Asked) -> Exported:
    from regard.storage import tensors

    run = _neural(run, "safetensors")
    own: Any = run.model
    told = {"model": run.config["model"]["name"], "task": run.task.name, "config": own.config.to_dict()}
    metadata = tensors.weights_metadata(run.model) | {"regard": json.dumps(told)}
    metadata |= {} if asked.licence is None else {"license": asked.licence}
    write_file(path, asked.force, tensors.chunks(tensors.weights_of(run.model), metadata))
    return Exported(path, "safetensors", size_of(path))


def _arpa(run: Run, path: Path, _asked: Asked) -> Exported:
    from regard.interop.arpa_write import write_arpa
    from regard.models.ngram import NgramModel
    from regard.tasks.verbs import ScoresPassages

    if format_of(path, None) != "arpa":
        raise UsageError(f"{path}: a run is exported as FILE.arpa, FILE.arpa.gz or FILE.arpa.xz")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    run.able(ScoresPassages)
    if not isinstance(run.model, NgramModel):
        told = f"ARPA files hold n-gram models, and this is a {run.config['model']['name']} model"
        raise UsageError(f"{run.path}: {told}")
    write_arpa(run.model, run.tokenizer, path)
    notes: list[str] = []
    if run.tokenizer.kind != "words":
        notes.append(f"its words are {run.tokenizer.kind}: who reads it must split text in the same way")
    elif run.config["data"].get("documents") != "line":
        notes.append("its sentences are not lines: count with data.documents=line for other programs")
    return Exported(path, "arpa", size_of(path), notes=tuple(notes))


def _described(run: Run, folder: Path, to: str, facts: dict[str, Any], asked: Asked, notes: Sequence[str]) -> None:
    """The card, and the file by which an exported folder is known."""
    card = model_card(run, to=to, licence=asked.licence, notes=notes)
    write_files(folder, {"README.md": [card.encode()], "export.json": [mark(to, facts)]})


FORMATS: dict[str, Callable[[Run, Path, Asked], Exported]] = {
    "hf": _hf,
    "onnx": _onnx,
    "gguf": _gguf,
    "safetensors": _safetensors,
    "arpa": _arpa,
}
