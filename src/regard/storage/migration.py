"""What has changed in run folders, and how those of an earlier format are read.

1   heads were called by what they give: to_logits, to_classes, to_quantiles; the net before one stood beside it
2   every model has a `head`, and the net before it is a part of it; a file of tensors says the format of its names
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FORMAT_VERSION = 2
NAMES = "names"  # of a file's metadata: the format of the names in it

# Beside names of weights there are those of what an optimiser keeps of them, as in optimiser/to_logits.weight/first.
HEAD = re.compile(r"(^|[./])(?:to_logits|to_classes|to_quantiles)(?=\.)")
BEFORE_HEAD = re.compile(r"(^|[./])transform(?=\.(?:vector_to_hidden|norm)\.)")


def name_now(name: str, metadata: Mapping[str, str]) -> str:
    """The name that a tensor of a file has today.

    >>> name_now("decoder.to_logits.weight", {}), name_now("transform.norm.bias", {})
    ('decoder.head.weight', 'head.transform.norm.bias')
    >>> name_now("to_logits.weight", {"names": "2"})
    'to_logits.weight'
    """
    if NAMES in metadata:
        return name
    return HEAD.sub(r"\1head", BEFORE_HEAD.sub(r"\1head.transform", name))
