"""The recipe that `regard new` writes: every setting with its default and what it means, commented out."""

from __future__ import annotations

import re
from typing import Any

from regard.run.settings import DEFAULT_DATA, DEFAULT_MODEL, DEFAULT_SIZE, data_settings, train_settings

HEAD = """\
# A recipe for regard train --recipe FILE. Precedence: defaults < size < recipe < --set < flags.
# Lines that begin with # show defaults; take the # away to change one.
# extends = "other.toml"      # start from another recipe, named from this file's folder

[data]
path = "{data}"      # a file or folder (named from this file's folder), or world:NAME
{data_lines}

[model]
name = "{model}"                # regard list
size = "{size}"              # tiny, small, base or paper
# n_layers = 4              # any setting of the model: regard show {model}

[train]
{train_lines}
"""
DATA_NOTES = {
    "tokens": "auto, bytes, chars, words, bpe, unigram or integers",
    "vocab_size": "the most tokens, for words, bpe and unigram",
    "valid": "held out: hash:PART, tail:PART or a path",
    "documents": "what a document is: auto, file, line or blank",
    "cache": "a folder that keeps prepared data, for texts that take long to read",
}
HEADED = "path"  # a setting that the head itself gives


def recipe_text(model: str = DEFAULT_MODEL, data: str = DEFAULT_DATA) -> str:
    """The commented recipe."""
    from regard.data.settings import DataSettings
    from regard.training.settings import TrainSettings

    notes = notes_in(TrainSettings.__doc__ or "")
    data_notes = notes_in(DataSettings.__doc__ or "") | DATA_NOTES
    of_data = {name: default for name, (_, default) in data_settings().items() if name != HEADED}
    data_lines = [_line(name, default, data_notes.get(name, "")) for name, default in of_data.items()]
    train_lines = [_line(name, default, notes.get(name, "")) for name, (_, default) in train_settings().items()]
    return HEAD.format(
        data=data, model=model, size=DEFAULT_SIZE, data_lines="\n".join(data_lines), train_lines="\n".join(train_lines)
    )


def notes_in(docstring: str) -> dict[str, str]:
    """The first line of what a docstring says of each field, where fields stand in a column of their own."""
    found = re.findall(r"^ {4}(\w+(?:, \w+)*) {1,}(\S.*)$", docstring, re.MULTILINE)
    return {name: note.strip() for names, note in found for name in names.split(", ")}


def _line(name: str, default: Any, note: str) -> str:
    setting = f"# {name} = {_toml(default)}" if default is not None else f"# {name} ="
    return f"{setting:<28}# {note}" if note else setting


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
