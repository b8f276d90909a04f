"""Other people's models as runs: `regard import`, and `load` of a folder as it is.

Weights go from file to file a tensor at a time, so that an import needs no more memory than its largest one. A run
folder is written at the end of all checks, whole or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.device import device_named, move
from regard.core.version import __version__
from regard.data.word_vectors import has_vectors
from regard.errors import CheckpointError, ResourceError, UsageError
from regard.interop import g2p_file
from regard.interop.hf_folder import ForeignModel, is_gguf, is_hf_folder, opened_source, task_name
from regard.interop.kept_weights import kept_weights
from regard.run.paths import require_name
from regard.storage import disk, tensors
from regard.tasks import task_named
from regard.tasks.masked import MaskedProcessor, MaskedText
from regard.tasks.pairs import PairProcessor, Pairs
from regard.tasks.processor import Processor
from regard.tasks.text import PlainText, TextProcessor
from regard.training import run_folder
from regard.training.estimate import WithoutChance
from regard.training.run_folder import CONFIG, WEIGHTS, claim
from regard.training.session import description
from regard.training.settings import TrainSettings

if TYPE_CHECKING:
    from regard.run.run import Run

HUB = "hf:"
WANTED = ("*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", "*.spm", "*.jinja")
REASON = "imported"
PROCESSORS: dict[str, Callable[[ForeignModel], Processor]] = {
    PlainText.name: lambda model: TextProcessor(model.tokenizer),
    MaskedText.name: lambda model: MaskedProcessor(model.tokenizer),
    Pairs.name: lambda model: PairProcessor(model.source or model.tokenizer, model.tokenizer),
}


@dataclass(frozen=True)
class Imported:
    """What an import came to. lost: what of the model has no place in a run."""

    path: Path
    source: str
    architecture: str
    task: str
    parameters: int
    bytes: int
    lost: tuple[str, ...] = ()


def import_run(source: str | Path, out: str | Path, *, weights: str | None = None) -> Imported:
    """Write the model of a folder, or of `hf:NAME`, as a run folder at `out`.

    weights  of linear maps: "int8" keeps 8 bits, which `generate --weights int8` makes at every start, "blocks" what
             a GGUF file has. None: float32.
    """
    where = Path(out).expanduser()
    require_name(where)
    run_folder.refuse_file(where)
    if (where / CONFIG).exists():
        raise UsageError(f"{where}: already holds a run; choose another --out")
    folder, revision = _fetched(source)
    with opened_source(folder) as model:
        told = {"source": str(source), "architecture": model.kind, "revision": revision, "weights": weights}
        told = {key: value for key, value in told.items() if value is not None}
        processor = _processor(model)
        config = _config(model, processor, {"imported": told})
        kept, kinds = kept_weights(model, weights)
        if kinds is not None:
            config["model"]["weights"] = kinds
        size = sum(form.nbytes for form in kept.shapes.values())
        with _made(where) as run:
            disk.require_space(run.path, size)
            run.publish(
                {
                    **{name: [content] for name, content in processor.files().items()},
                    WEIGHTS: tensors.streamed(kept.shapes, kept.weights, kept.metadata),
                    CONFIG: run_folder.json_file(config),
                }
            )
            run.close_logs({"reason": REASON})
        parameters = sum(math.prod(form.shape) for form in model.shapes.values())
        lost = tuple(model.plan.lost)
        return Imported(where, str(source), model.kind, task_name(model), parameters, size, lost)


def load_folder(path: Path, device: str) -> Run:
    """The model of a folder as it is, ready for use like a run of one's own."""
    from regard.run.run import Run

    with opened_source(path) as model:
        processor = _processor(model)
        config = _config(model, processor, {"imported": {"source": str(path), "architecture": model.kind}})
        with WithoutChance():
            built: Any = model.plan.config.build()
        own = tensors.weights_of(built)
        for name in own:
            tensors.copy_into({name: own[name]}, {name: model.weights[name]})
        task = task_named(task_name(model)).with_settings(_training(model), _data())
    move(built, device_named(device))
    return Run(path, config, task, built.eval(), processor)


def _processor(model: ForeignModel) -> Processor:
    return PROCESSORS[task_name(model)](model)


def _training(model: ForeignModel) -> TrainSettings:
    return replace(TrainSettings(), length=model.length)


def _data() -> Any:
    from regard.data.settings import from_dict

    return from_dict({})


def _config(model: ForeignModel, processor: Processor, more: dict[str, Any]) -> dict[str, Any]:
    """What config.json of the run says."""
    about = {
        "regard": __version__,
        "model": {"name": model.plan.model, "size": "small", "settings": {}},
        "data": {"task": task_name(model)},
        "origins": {},
        **more,
    }
    identity = {"tokenizer": processor.hash}
    return description(model.plan.config, identity, _training(model), device_named("cpu"), about)


@contextmanager
def _made(path: Path) -> Iterator[run_folder.RunFolder]:
    """A run folder that is gone again where nothing came of it."""
    is_new = not path.exists()
    try:
        with claim(path) as run:
            yield run
    except BaseException:
        if is_new and path.exists() and not (path / CONFIG).exists():
            disk.remove_tree(path)
        raise


def _fetched(source: str | Path) -> tuple[Path, str | None]:
    """The folder of a source, and its revision where it comes from a hub."""
    if str(source).startswith(g2p_file.PREFIX):
        return g2p_file.packaged(str(source)), None
    if not str(source).startswith(HUB):
        path = Path(source).expanduser()
        if is_gguf(path) or g2p_file.is_npz(path) or has_vectors(path):
            return path, None
        if not path.is_dir():
            raise CheckpointError(f"{path}: no such folder; a model of the hub is written hf:OWNER/NAME")
        if not is_hf_folder(path):
            raise CheckpointError(f"{path}: no folder of a model, it has no config.json with a model_type")
        return path, None
    name, _, asked = str(source).removeprefix(HUB).partition("@")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UsageError(f"{source}: models of the hub need pip install huggingface_hub") from None
    try:
        found = Path(snapshot_download(name, revision=asked or None, allow_patterns=list(WANTED)))
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ResourceError(f"{source}: cannot be fetched from the hub: {reason}") from None
    return found, found.name
