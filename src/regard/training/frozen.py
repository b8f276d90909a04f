"""Parts of a model that are left as they are, by name, and rates that fall from layer to layer.

embedding,layers.0-3        all parameters below a part of that name: encoder.embedding, encoder.stack.layers.0 ..
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch import nn

from regard.errors import UsageError, nearest

RANGE = re.compile(r"([0-9]+)-([0-9]+)")
LAYER = re.compile(r"(.*?)\blayers\.([0-9]+)\..*")
TABLE = "embedding"


def freeze(model: nn.Module, names: str | None) -> None:
    """Leave the parameters below the named parts as they are; a name that names nothing is refused."""
    if names is None:
        return
    known = dict(model.named_parameters())
    for name in (word.strip() for word in names.split(",")):
        found = [known[one] for one in known if is_below(one, name)]
        if not found:
            raise UsageError(f"train.freeze: {name!r} names no part of the model{nearest(name, parts(known))}")
        for parameter in found:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in known.values()):
        raise UsageError(f"train.freeze: {names} leaves nothing to learn; name less of the model")


def is_below(parameter: str, part: str) -> bool:
    """Whether a parameter lies below a part, whose name may begin anywhere and have ranges in the place of numbers.

    >>> is_below("encoder.stack.layers.2.mlp.bias", "layers.0-3"), is_below("stack.layers.12.mlp.bias", "layers.1")
    (True, False)
    """
    words, wanted = parameter.split("."), part.split(".")
    places = range(len(words) - len(wanted) + 1)
    return any(all(map(_is, words[place : place + len(wanted)], wanted)) for place in places)


def _is(word: str, wanted: str) -> bool:
    span = RANGE.fullmatch(wanted)
    return word == wanted if span is None else word.isdigit() and int(span[1]) <= int(word) <= int(span[2])


def parts(parameters: Iterable[str]) -> list[str]:
    """The shortest names by which parts can be named: of each what comes last, and layers with their number."""
    found = dict[str, None]()
    for name in parameters:
        words = name.split(".")[:-1]
        for end in range(1, len(words) + 1):
            start = end - 2 if end > 1 and words[end - 1].isdigit() else end - 1
            found[".".join(words[start:end])] = None
    return list(found)


def rate_factors(parameters: Iterable[str], decay: float) -> dict[str, float]:
    """How much of the rate each parameter learns at: all of it at the top, `decay` of that a layer below, and so on.

    Each stack has its own top: an encoder's last layer learns as a decoder's does, however many either has. What a
    stack reads, its embedding, is one below its first layer; what stands above it learns at the whole rate.

    >>> rate_factors(["embedding.w", "stack.layers.0.w", "stack.layers.1.w", "head.w"], 0.5)
    {'embedding.w': 0.25, 'stack.layers.0.w': 0.5, 'stack.layers.1.w': 1.0, 'head.w': 1.0}
    """
    names = list(parameters)
    depths: dict[str, int] = {}  # of each stack, by what the names of its layers begin with
    for name in names:
        if found := LAYER.match(name):
            depths[found[1]] = max(depths.get(found[1], 0), int(found[2]) + 1)

    def below(name: str) -> int:
        found = LAYER.match(name)
        if found is not None:
            return depths[found[1]] - 1 - int(found[2])
        owner, table, _ = f".{name}.".partition(f".{TABLE}.")
        own = [depth for stack, depth in depths.items() if table and f".{stack}".startswith(f"{owner}.")]
        return max(own, default=0)

    return {name: decay ** below(name) for name in names}
