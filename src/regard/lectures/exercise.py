"""Exercises: whether an answer is right, told in a line, and how a mixer of one's own does before the laws.

What is right stands in the notebook (`answers` in the metadata of the exercise's screen), or follows from the laws.
Whatever is answered, nothing is raised: a wrong answer is no error of the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from pathlib import Path
from typing import Any

from regard.errors import RegardError, Stopped, UsageError
from regard.lectures.catalogue import lecture
from regard.lectures.notebook import SUFFIX, Exercise, Lecture

NEAR = 0.005  # of a number, relative to it
ROUGH = 0.02  # what is told to be near: of too few digits, perhaps
ROUNDED = 1e-12  # what the last digits of a product of floats may be off a whole number, relative to it
RIGHT, OPEN = "right", "not answered yet"
_sat: ContextVar[Lecture | None] = ContextVar("the lecture that is being sat", default=None)


@contextmanager
def sitting_in(now: Lecture) -> Iterator[None]:
    """A context in which exercises are those of a lecture, which may lie anywhere."""
    token = _sat.set(now)
    try:
        yield
    finally:
        _sat.reset(token)


def answer(name: str, value: Any = None) -> None:
    """Print whether the answer to an exercise, such as "counting/1", is right, and a hint where it is not.

    value  a number, a word, True or False, or a list or an array of them; None: not answered yet.
    """
    print(f"{name}: {verdict(name, value)}")


def verdict(name: str, value: Any) -> str:
    """What `answer` prints after the name."""
    try:
        one = _exercise(name)
    except RegardError as error:
        return str(error)
    if one is None:
        return "there is no such exercise"
    given = plain(value)
    if given is None:
        return OPEN
    wrong = difference(given, one.truth, one.tolerance)
    return RIGHT if not wrong else f"not yet: {wrong}{f'. {one.hint}' if one.hint else ''}"


def passes(mixer: Any) -> bool | None:
    """Whether a mixer of one's own keeps every law of `regard check`; those that it breaks are printed.

    mixer  a class that takes its width, or a function that makes one; None: not written yet.
    What is no mixer is no answer: a line says why.
    """
    if mixer is None:
        return None
    from regard.laws import check
    from regard.laws.check import failures

    try:
        broken = failures(check(mixer))
    except Stopped:
        raise
    except Exception as error:  # somebody's own class: whatever it raises is a wrong answer
        print(error if isinstance(error, RegardError) else f"{type(error).__name__}: {error}")
        return False
    for one in broken:
        print(f"{one.law} does not hold: {one.detail}")
    return not broken


def plain(value: Any) -> Any:
    """An array, a tensor or a tuple as a list, a number of numpy or torch as Python's."""
    try:
        value = value.tolist() if hasattr(value, "tolist") else value
    except Exception as error:  # somebody's own class: whatever it raises is no answer
        return f"{type(error).__name__}: {error}"
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def difference(given: Any, truth: Any, tolerance: float | None = None) -> str:
    """In what an answer is not the truth; nothing where it is.

    >>> difference(0.25, 0.25001), difference([1, 2], [1, 2, 3]), difference(0.3, 0.25)
    ('', '3 values are expected, 2 were given', '0.3 is not it')
    """
    if isinstance(truth, list):
        if not isinstance(given, list):
            return f"a list of {len(truth)} is expected"
        if len(given) != len(truth):
            return f"{len(truth)} values are expected, {len(given)} {'was' if len(given) == 1 else 'were'} given"
        wrong = [place for place in range(len(truth)) if difference(given[place], truth[place], tolerance)]
        return f"value {wrong[0] + 1} of {len(truth)} is not it" if wrong else ""
    if _is_number(truth) and not _is_number(given):
        return "a number is expected"
    is_right = _is_near(given, truth, tolerance) if _is_number(truth) else _is_same(given, truth)
    if not is_right and isinstance(truth, float) and _is_near(given, truth, ROUGH * abs(truth)):
        return f"{_told(given)} is near, and not near enough"
    return "" if is_right else f"{_told(given)} is not it"


def _is_near(given: Real, truth: float, tolerance: float | None) -> bool:
    if isinstance(truth, int) and tolerance is None:
        return given == truth or (isinstance(given, float) and math.isclose(given, truth, rel_tol=ROUNDED))
    try:
        return math.isclose(given, truth, rel_tol=NEAR if tolerance is None else 0.0, abs_tol=tolerance or 0.0)
    except OverflowError:  # an integer beyond all floats
        return False


def _is_same(given: Any, truth: Any) -> bool:
    if isinstance(truth, str):
        return isinstance(given, str) and given.strip().lower() == truth.strip().lower()
    return type(given) is type(truth) and given == truth


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _told(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def _exercise(name: str) -> Exercise | None:
    """The exercise of that name: of the lecture that is sat, of the package, or of a notebook in this folder."""
    owner, _, number = str(name).rpartition("/")
    if not owner:
        raise UsageError('name the lecture and the exercise, as "counting/1"')
    now = _sat.get()
    if now is None or now.name != owner:
        here = Path(f"{owner}{SUFFIX}")
        now = lecture(here if here.is_file() else owner)
    return now.exercises.get(number)
