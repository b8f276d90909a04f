"""Study: a claim of a lecture or a paper as an experiment with a rule that was fixed before it was run.

A study measures plain numbers, once for each seed, and judges them by its rule. What it finds is one of three things:

    holds            the rule is met in every seed
    does not hold    it is broken in every seed
    not settled      seeds disagree, or the size is too small to tell

A new study is one file here and one line in `regard.studies.registry`, or one from outside the package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from regard.core.registry import entry
from regard.errors import RegardError
from regard.run.train import train

T = TypeVar("T")
Found = Mapping[str, Any]
ScaleName = Literal["quick", "cpu", "gpu"]
Outcome = Literal["holds", "does not hold", "not settled"]
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Verdict:
    """What a study came to, and the numbers it rests on, in a sentence."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class Lab:
    """Where one seed of a study is measured: how much it may spend, on what device, and a folder for its runs."""

    scale: ScaleName
    seed: int
    folder: Path
    device: str = "cpu"

    def pick(self, quick: T, cpu: T, gpu: T) -> T:
        """The value for the scale: under a minute, under five minutes, or under four on a GPU, for all seeds."""
        return {"quick": quick, "cpu": cpu, "gpu": gpu}[self.scale]

    def train(self, model: str, data: str, name: str, **settings: Any) -> Any:
        """A run of the lab's seed, made as a person would make it; `name` is unique within the study."""
        # Rules were fixed and verdicts measured at the preset's rate, whatever the width: it is not scaled here.
        own = {"lr": entry(model).training.get("lr")}
        given: dict[str, Any] = {"seed": self.seed, "device": self.device, "sample_every": 0} | own | settings
        return train(model, data, out=self.folder / f"{name}-{self.seed}", quiet=True, **given)


class Study(ABC):
    """Base of all studies.

    id      as in `regard reproduce ID`.
    claim   in a sentence.
    source  who says so, and where.
    rule    what must hold in every seed, in words; `judge` is the same in code.
    scales  at which it can be run.
    refuses what is wrong with what was given to it, and no finding.
    """

    id: ClassVar[str]
    claim: ClassVar[str]
    source: ClassVar[str]
    rule: ClassVar[str]
    scales: ClassVar[tuple[ScaleName, ...]] = ("quick", "cpu", "gpu")
    refuses: ClassVar[tuple[type[RegardError], ...]] = ()

    @property
    def name(self) -> str:
        """What its results are called."""
        return self.id

    @property
    def about(self) -> dict[str, str]:
        """What else its results depend on, beside the rule and the version."""
        return {}

    @property
    def given(self) -> dict[str, str]:
        """What else a result tells, of where that was found."""
        return {}

    def check(self, device: str) -> None:  # noqa: B027  # most are given nothing that could be wrong
        """Refuse what cannot be asked, before anything is measured or written."""

    @abstractmethod
    def measure(self, lab: Lab) -> dict[str, Any]:
        """The numbers of one seed, plain enough for JSON."""

    @abstractmethod
    def judge(self, found: Sequence[Found]) -> Verdict:
        """The verdict on the numbers of all seeds."""

    @abstractmethod
    def figure(self, found: Sequence[Found]) -> str:
        """A picture of them, as SVG."""


def judged(found: Sequence[Found], rule: Callable[[Found], bool], reason: str) -> Verdict:
    """The verdict of a rule that each seed meets or breaks on its own."""
    met = sum(map(rule, found))
    outcome: Outcome = "holds" if met == len(found) else "not settled" if met else "does not hold"
    return Verdict(outcome, f"{reason}; the rule is met in {met} of {len(found)} seeds")


def mean(found: Sequence[Found], *keys: str) -> float:
    """The mean over seeds of the number under `keys`, one inside the other."""
    total = 0.0
    for one in found:
        value: Any = one
        for key in keys:
            value = value[key]
        total += float(value)
    return total / len(found)
