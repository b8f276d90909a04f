"""Formats of other programs that `load` reads like runs of one's own; each is imported when a file of it is loaded."""

from __future__ import annotations

from pathlib import Path

from regard.core.device import device_named, move
from regard.run.readers import register_reader
from regard.run.run import Run
from regard.training.settings import TrainSettings


def is_arpa(path: Path) -> bool:
    """Whether a file is called as ARPA files are, packed or not.

    >>> is_arpa(Path("my.arpa.gz")), is_arpa(Path("my.txt"))
    (True, False)
    """
    return ".arpa" in [ending.lower() for ending in path.suffixes[-2:]] and not path.is_dir()


def arpa_run(path: Path, device: str) -> Run:
    """An n-gram model that another program estimated."""
    from regard.interop.arpa_read import read_arpa
    from regard.tasks.text import PlainText, TextProcessor

    model, tokenizer = read_arpa(path)
    move(model, device_named(device))
    about = {"name": "ngram", "size": "small", "settings": {}, "config": model.config.to_dict()}
    config = {"model": about, "data": {"documents": "line"}, "train": TrainSettings().to_dict()}
    return Run(path, config, PlainText(documents="line"), model.eval(), TextProcessor(tokenizer))


def is_hf_folder(path: Path) -> bool:
    """Whether a folder is a model of Hugging Face, and no run."""
    if not (path / "config.json").is_file():
        return False
    from regard.interop import hf_folder

    return hf_folder.is_hf_folder(path)


def is_gguf(path: Path) -> bool:
    """Whether a file is called as those of llama.cpp are."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def is_npz(path: Path) -> bool:
    """Whether a file is called as numpy's archives are."""
    return path.suffix.lower() == ".npz" and path.is_file()


def hf_run(path: Path, device: str) -> Run:
    """A model as `transformers`, llama.cpp or g2p-en keeps it."""
    from regard.interop.import_run import load_folder

    return load_folder(path, device)


register_reader("arpa", is_arpa, arpa_run)
register_reader("huggingface", is_hf_folder, hf_run)
register_reader("gguf", is_gguf, hf_run)
register_reader("g2p", is_npz, hf_run)
