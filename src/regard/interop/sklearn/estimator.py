"""RunEstimator: what all estimators share. Parameters are stored as they are given and looked at when they are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from regard.interop.sklearn.calls import Columns, Work, is_fitted_at_once, learnt, task_of
from regard.interop.sklearn.holding_out import held_out
from regard.interop.sklearn.kept_run import KeptRun
from regard.interop.sklearn.refusal import BadSetting, refused
from regard.run.run import Run

BUDGET = "500steps"  # not minutes: the same steps are made wherever and however often it is fitted
MOST_SEEDS = 2**31


class RunEstimator(BaseEstimator):
    """Base of the estimators.

    natural   the model that says which task the estimator is for.
    own       settings that have a parameter of their own or are the estimator's to set, and what to say instead.
    """

    natural: ClassVar[str]
    own: ClassVar[Mapping[str, str]] = {
        **{name: f"the parameter {name}" for name in ("model", "name", "size", "budget", "device")},
        **dict.fromkeys(("seed", "random_state"), "the parameter random_state"),
        **dict.fromkeys(("data", "path", "task", "out", "resume"), "the data that is given to fit"),
    }

    model: str
    size: str
    budget: str
    random_state: Any
    device: str
    settings: Mapping[str, Any] | None

    @property
    def run_(self) -> Run:
        """The fitted run, with all its verbs: `run_.explain(...)`, `run_.evaluate(...)`."""
        check_is_fitted(self)
        with refused():
            return self._kept.run

    def save_run(self, path: str | Path) -> Self:
        """Leave the run in a new folder, for `regard.load` and the commands."""
        check_is_fitted(self)
        folder = Path(path).expanduser()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadSetting(f"{folder}: is there already and not empty; choose another folder")
        self._kept.write(folder)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_kept")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags

    def _learn(self, columns: Columns, judge: Columns | None = None, **told: Any) -> None:
        """Train on columns. judge: those that are held out. told: settings that say which column is what."""
        told = {"task": self._task(), **told} | self._settings()
        work = Work(self.model, self.size, self.budget, self._seed(), self.device, told)
        self._kept: KeptRun = learnt(work, columns, judge)

    def _dealt(self, keys: Sequence[str], targets: Sequence[set[int]]) -> tuple[np.ndarray, np.ndarray | None]:
        """The numbers of the examples to learn from and of those held out; None where settings say how.

        What is fitted at once learns from all: it is judged by the first example, which is nobody's concern.
        """
        rows = np.arange(len(keys))
        if self._says_valid:
            return rows, None
        held = np.zeros(len(keys), bool) if is_fitted_at_once(self.model) else held_out(keys, targets)
        return rows[~held], rows[held] if held.any() else rows[:1]

    @property
    def _says_valid(self) -> bool:
        return bool({"valid", "data.valid"} & self._settings().keys())

    def _task(self) -> str:
        return task_of(self.natural)

    def _settings(self) -> dict[str, Any]:
        """The further settings, without what is said elsewhere."""
        if self.settings is None:
            return {}
        if not isinstance(self.settings, Mapping) or not all(isinstance(key, str) for key in self.settings):
            raise BadSetting(
                f"settings={self.settings!r} must be a dict such as {{'order': 2}} or {{'train.lr': 1e-3}}"
            )
        for key in self.settings:
            instead = self.own.get(key.rpartition(".")[2])
            if instead is not None:
                raise BadSetting(f"settings: {key} is told by {instead}; leave it out of settings")
        return dict(self.settings)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(MOST_SEEDS))
