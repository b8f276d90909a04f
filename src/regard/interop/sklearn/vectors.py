"""TextVectors: texts as vectors of a run, for whatever comes after in a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from regard.errors import nearest
from regard.interop.sklearn.calls import is_fitted_at_once, task_of, vectors
from regard.interop.sklearn.estimator import BUDGET, RunEstimator
from regard.interop.sklearn.kept_run import KeptRun
from regard.interop.sklearn.refusal import BadData, BadSetting, refused
from regard.interop.sklearn.texts import as_texts
from regard.run.run import load_folder
from regard.run.vectors import Pooled
from regard.tasks import task_named


class TextVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RunEstimator):
    """Texts as vectors: those of their tokens in their context, brought to one.

    run      the folder of a trained run. None: `model` is trained on the texts that are given to fit.
    pooling  how the vectors of a text become one: mean, max, first or last. An empty text is a vector of zeros.
    model    a language model with vectors, such as gpt, lstm, mamba or bert.

    The other parameters are those of `SequenceClassifier`, and mean something without `run`. After fit: `run_`.
    """

    def __init__(
        self,
        run: str | Path | None = None,
        *,
        pooling: Pooled = "mean",
        model: str = "gpt",
        size: str = "small",
        budget: str = BUDGET,
        random_state: Any = 0,
        device: str = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.run, self.model, self.size, self.budget = run, model, size, budget
        self.pooling: Pooled = pooling
        self.random_state, self.device, self.settings = random_state, device, settings

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the run, or train one on the texts. y: not looked at."""
        if self.pooling not in get_args(Pooled):
            raise BadSetting(f"pooling={self.pooling!r} is not a choice{nearest(str(self.pooling), get_args(Pooled))}")
        texts = as_texts(X)
        if self.run is None:
            spelt = [text for text in texts if text.strip()]
            if not spelt:
                raise BadData("X has no words: every text is empty")
            learn, judge = self._dealt(spelt, [set()] * len(spelt))
            held = None if judge is None else {"text": [spelt[row] for row in judge]}
            self._learn({"text": [spelt[row] for row in learn]}, held, text="text")
        elif isinstance(self.run, str | Path):
            folder = Path(self.run).expanduser()
            self._kept = KeptRun.of_folder(folder, self.device, load_folder(folder, device=self.device))
        else:
            raise BadSetting(f"run={self.run!r} must be the folder of a run, such as 'runs/gpt'")
        # Whatever the text, its vector is as wide; a run without vectors is refused here and not first in `transform`.
        self._n_features_out = vectors(self.run_, ["a"], self.pooling).shape[1]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """A vector for each text, (n, D)."""
        check_is_fitted(self)
        texts = as_texts(X)
        found = np.zeros((len(texts), self._n_features_out), np.float32)
        spelt = [row for row, text in enumerate(texts) if text.strip()]
        if spelt:
            found[spelt] = vectors(self.run_, [texts[row] for row in spelt], self.pooling)
        return found

    def _task(self) -> str:
        with refused():
            task = task_named(task_of(self.model))
            learns = task if task.same_data_as is None else task_named(task.same_data_as)
        if not learns.takes_anything:
            raise BadSetting(
                f"model={self.model!r} is for {task.name}, and texts alone are not that; choose one such as 'gpt' or "
                f"'bert', or name a trained run"
            )
        if is_fitted_at_once(self.model):
            raise BadSetting(f"model={self.model!r} is fitted at once and has no vectors; choose one such as 'gpt'")
        return task.name

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags
