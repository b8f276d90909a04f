"""The format of run folders: its number, the steps by which it changed, and how what an earlier regard wrote is read.

A folder says its number in its manifest and in its config.json, a file of tensors in its metadata. One of an earlier
number is read through the steps since; a newer one is refused in a line that names both numbers. Nothing is written
back by reading: a training that goes on writes the number of today.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.errors import LONGEST_TOLD, CheckpointError

NAMES = "names"  # of a file's metadata: the format of the names in it
# Beside names of weights there are those of what an optimiser keeps of them, as in optimiser/to_logits.weight/first.
HEAD = re.compile(r"(^|[./])(?:to_logits|to_classes|to_quantiles)(?=\.)")
BEFORE_HEAD = re.compile(r"(^|[./])transform(?=\.(?:vector_to_hidden|norm)\.)")


@dataclass(frozen=True)
class Step:
    """What one number of the format changed.

    to      the number that it led to. name, about: what it is called, and what was so before.
    tensor  the name that a tensor of the format before has from then on.
    """

    to: int
    name: str
    about: str
    tensor: Callable[[str], str]


def _heads(name: str) -> str:
    return HEAD.sub(r"\1head", BEFORE_HEAD.sub(r"\1head.transform", name))


# In their order, each from the number before. A run of every number is kept in tests/kept.
STEPS = (
    Step(
        to=2,
        name="heads",
        about="heads were called by what they give (to_logits, to_classes, to_quantiles) and the net before one stood "
        "beside it; since then every model has a `head`, and a file of tensors says the format of its names",
        tensor=_heads,
    ),
)
FIRST, FORMAT_VERSION = 1, STEPS[-1].to


def steps_since(version: int) -> tuple[Step, ...]:
    """What a folder of that number has to go through."""
    return tuple(step for step in STEPS if step.to > version)


def newer(version: int) -> str:
    """Why a number above that of today is refused."""
    return f"written in format {version}, this regard reads up to {FORMAT_VERSION}; upgrade it"


def require_readable(version: int, where: Path) -> int:
    """The number itself, where this regard reads it."""
    if version > FORMAT_VERSION:
        raise CheckpointError(f"{where}: {newer(version)}")
    return version


def format_of(metadata: Mapping[str, str], path: Path) -> int:
    """The format of the names in a file of tensors; the first one told none."""
    told = metadata.get(NAMES, str(FIRST))
    if not (told.isascii() and told.isdigit() and len(told) < 10):
        raise CheckpointError(f"{path}: {NAMES} is no format, found {told[:LONGEST_TOLD]!r}")
    return require_readable(int(told), path)


def name_now(name: str, version: int) -> str:
    """The name that a tensor of a file of that format has today.

    >>> name_now("decoder.to_logits.weight", 1), name_now("transform.norm.bias", 1)
    ('decoder.head.weight', 'head.transform.norm.bias')
    >>> name_now("to_logits.weight", 2)
    'to_logits.weight'
    """
    for step in steps_since(version):
        name = step.tensor(name)
    return name
