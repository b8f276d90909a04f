"""Labels of any type, and the names that stand for them in a run; what is answered has the type that was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from regard.data.missing import NO_VALUE
from regard.interop.sklearn.refusal import BadData
from regard.interop.sklearn.texts import is_missing


def as_labels(y: Any, n: int) -> np.ndarray:
    """One label for each of n texts."""
    if y is None:
        raise BadData("this estimator requires y to be passed, but the target y is None; give a label for each text")
    for number, label in enumerate(y if isinstance(y, list | tuple) else ()):
        # Beside texts numpy would write it out, and make a class of it.
        if is_missing(label):
            raise BadData(f"y[{number}] is missing ({label}), and y contains NaN; leave that row out")
    labels = column_or_1d(y, warn=True)
    for number in [place for place, label in enumerate(labels) if is_missing(label)] if labels.dtype == object else ():
        raise BadData(f"y[{number}] is missing ({labels[number]}), and y contains NaN; leave that row out")
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    if len(labels) != n:
        raise BadData(f"found inconsistent numbers of samples: {n} texts in X and {len(labels)} labels in y")
    return labels


def names_of(classes: Sequence[Any] | np.ndarray) -> list[str]:
    """A name for each class: as it is written, or its number where that tells too little for a table of text.

    >>> names_of([0, 1]), names_of(["a", " a"]), names_of(["NA", "b"])
    (['0', '1'], ['class 0', 'class 1'], ['class 0', 'class 1'])
    """
    written = [str(one) for one in classes]
    if len({name.strip() for name in written}) == len(written) and not NO_VALUE & {name.strip() for name in written}:
        return [name.strip() for name in written]
    return [f"class {number}" for number in range(len(written))]
