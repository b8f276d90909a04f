"""Class weights: how much an example of each class counts in a loss, so that rare classes are not passed over.

    balanced   w_c = n / (C n_c)          every class counts as much as any other (King and Zeng 2001)
    a=5,b=2    as they are written, 1 for classes that are not named

n is the number of targets in the training part, n_c of them of class c, of C classes. Only the ratios matter: weights
are brought to a mean of 1 over the training part, so that a learning rate or a strength means what it means without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.errors import UsageError, nearest

NONE, BALANCED = "none", "balanced"
WORDS = f"{NONE}, {BALANCED}, or a weight above 0 for classes, such as spam=5,ham=1"


def told(text: str) -> dict[str, float] | None:
    """The weights that somebody wrote, by class; None where they are none or balanced, or where it is neither.

    >>> told("spam=5, not spam = 0.5"), told("balanced"), told("a=-1")
    ({'spam': 5.0, 'not spam': 0.5}, None, None)
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.rpartition("=")
        try:
            weight = float(value)
        except ValueError:
            return None
        if not equals or not name.strip() or name.strip() in found or not 0 < weight < math.inf:
            return None
        found[name.strip()] = weight
    return found


def is_allowed(value: object) -> bool:
    """Whether a setting can be meant."""
    return isinstance(value, str) and (value in (NONE, BALANCED) or told(value) is not None)


def class_weights(text: str, classes: Sequence[str], numbers: np.ndarray) -> np.ndarray | None:
    """The weight of each class, (C,); None where all count the same. numbers: the class of every target of training."""
    if text == NONE:
        return None
    counts = np.bincount(numbers, minlength=len(classes)).astype(np.float64)
    own = told(text)
    if own is None:
        weights = counts.sum() / (len(classes) * np.maximum(counts, 1.0))
    else:
        for name in own:
            if name not in classes:
                raise UsageError(f"train.class_weights: there is no class {name!r}{nearest(name, classes)}")
        weights = np.array([own.get(name, 1.0) for name in classes])
    return weights * counts.sum() / max(1e-300, float(weights @ counts))
