"""The studies by name: a new one is one new file and one line, also from outside the package.

    @register_study
    class Mine(Study): ...

A built-in study lies in the file of its name in `regard.studies.claims`, which is imported when the study is asked for.
One from outside is registered when its module is imported: by `--import`, or by an entry point of `regard.studies`.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, TypeVar

from regard.core.plugin import load_entry_points
from regard.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.studies.claims.study import Study
    from regard.studies.imported.study import StudyOnRun

# Names, the one line of a built-in study. Those of papers have a number in the protocol, by which they are known too.
LECTURES = (
    *("mask", "forget", "bottleneck", "passing", "pooling", "quadratic", "parallel", "order", "length", "depth"),
    *("query", "meaning", "matrix", "path", "access", "scale", "electricity", "mad"),
)
PAPERS = (
    *("ladder", "reversal", "looking_back", "deep_lstm", "transformer", "pretraining", "larger", "in_context"),
    *("bert_layers", "senses", "long_convolution", "selection", "duality"),
)
BUILT_IN = (*LECTURES, *PAPERS)
# Those that have a form on a model that somebody else has trained, in the file of their name in `studies.imported`.
ON_RUNS = ("meaning", "pretraining", "in_context", "bert_layers")
NUMBER = re.compile(r"p\d+")

S = TypeVar("S", bound="type[Study]")
_studies: dict[str, type[Study]] = {}


def register_study(study: S) -> S:
    """Add a study under its `id`. A name may be taken once."""
    known, module = _studies.get(study.id), study.__module__
    own = f"regard.studies.claims.{study.id}"
    taken = known.__module__ if known else own if study.id in BUILT_IN else module
    if taken != module or NUMBER.fullmatch(study.id):
        raise UsageError(f"the study name {study.id!r} is taken by {taken}")
    _studies[study.id] = study
    return study


def names() -> list[str]:
    """Every study, built-in ones first."""
    load_entry_points("regard.studies")
    return [*BUILT_IN, *(name for name in _studies if name not in BUILT_IN)]


def study(name: str) -> Study:
    """The study of that name, or of that number; an unknown one names the nearest."""
    name = next((paper for paper in PAPERS if number_of(paper) == name), name)
    if name not in _studies and name in BUILT_IN:
        importlib.import_module(f"regard.studies.claims.{name}")
    if name not in _studies and name not in names():
        outside = "a study from outside the package is imported first: --import MODULE"
        raise UsageError(f"unknown study {name!r}{_meant(name)}; regard reproduce --list names them all ({outside})")
    return _studies[name]()


def study_on(name: str, run: str, data: str | None) -> StudyOnRun:
    """The form of a study on a run; one that has none names those that have."""
    name = next((paper for paper in PAPERS if number_of(paper) == name), name)
    if name not in ON_RUNS:
        known = study(name).id  # an unknown name is told as such
        raise UsageError(f"{known} has no form on a run; {', '.join(ON_RUNS)} have one")
    return importlib.import_module(f"regard.studies.imported.{name}").FORM(run, data)


def number_of(name: str) -> str:
    """The number of a study in the protocol of the papers; empty for one that has none.

    >>> number_of("ladder"), number_of("mask")
    ('p0', '')
    """
    return f"p{PAPERS.index(name)}" if name in PAPERS else ""


def _meant(name: str) -> str:
    """A hint: of a number that no paper has the numbers there are, else the nearest name.

    >>> _meant("p13"), _meant("maks")
    (': the papers are p0 to p12', ", did you mean 'mask'?")
    """
    if NUMBER.fullmatch(name):
        return f": the papers are p0 to {number_of(PAPERS[-1])}"
    return nearest(name.lower(), names())
