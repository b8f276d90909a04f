"""SeriesForecaster: the values of a series to come, with what is known ahead of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from regard.data.grid import is_by_the_day, usual
from regard.interop.sklearn.calls import is_fitted_at_once, quantiles_ahead
from regard.interop.sklearn.estimator import BUDGET, RunEstimator
from regard.interop.sklearn.holding_out import SHARE
from regard.interop.sklearn.past import TARGET, TIME, Past, past_of, values_of
from regard.interop.sklearn.refusal import BadData, BadSetting


class SeriesForecaster(RegressorMixin, RunEstimator):
    """A forecaster of one series.

    model    naive, lear or dlinear, which are fitted at once; forecaster, or the name of an encoder.
    horizon  steps that are forecast; None for what suits the step, such as 24 hours or 7 days.
    step     how far the values are apart where they carry no times: minute, hour, day, week, month, "15 minutes".

    The other parameters are those of `SequenceClassifier`; `settings={"season": 12, "history": 36}` says after how
    many steps things repeat and how many are read. After fit: `horizon_`, `quantiles_`, `run_`.
    """

    natural: ClassVar[str] = "forecaster"
    own: ClassVar[Mapping[str, str]] = {
        **RunEstimator.own,
        "horizon": "the parameter horizon",
        **dict.fromkeys(("time", "target", "known", "past", "series", "static"), "the data that is given to fit"),
    }

    def __init__(
        self,
        model: str = "forecaster",
        *,
        horizon: int | None = None,
        step: str = "day",
        size: str = "small",
        budget: str = BUDGET,
        random_state: Any = 0,
        device: str = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.horizon, self.step, self.size, self.budget = model, horizon, step, size, budget
        self.random_state, self.device, self.settings = random_state, device, settings

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a series: `fit(y)`, or `fit(X, y)` with a row of X for each value that says what is known ahead of it.

        A Series or frame that is indexed by times brings its own; rows come in the order of time.
        """
        X, y = (None, X) if y is None else (X, y)
        past = past_of(X, y, self.step)
        if np.isnan(past.values).any() and not {"gaps", "data.gaps"} & self._settings().keys():
            hole = int(np.argmax(np.isnan(past.values)))
            raise BadData(f"y[{hole}] is missing (nan); mend it, or say settings={{'gaps': 'interpolate'}}")
        horizon = self._horizon(past.step)
        told = {"time": TIME, "target": TARGET, "past": "", "horizon": horizon}
        if past.names:
            told["known"] = ",".join(past.names)
        if not self._says_valid:
            told["valid"] = self._tail(len(past), horizon, past.step)
        self._learn(past.columns(), **told)
        processor: Any = self.run_.processor
        self.horizon_ = int(processor.horizon)
        self._past: Past = past.last(int(processor.history))
        self.n_features_in_ = len(past.names)
        self.quantiles_ = np.array(self._quantiles(np.zeros((self.horizon_, len(past.names))))[1])
        return self

    def update(self, X: Any, y: Any = None) -> Self:
        """Take in the values that came after those of fit, without learning: forecasts begin after them."""
        check_is_fitted(self)
        X, y = (None, X) if y is None else (X, y)
        self._past = self._past.followed_by(X, y).last(len(self._past))
        return self

    def predict(self, X: Any = None) -> np.ndarray:
        """The values to come, (n,).

        X  how many steps (24), which of them ([1, 24]), or a row for each with what is known of it; None for all.
        """
        found, quantiles = self._ahead(X)
        return found[:, quantiles.index(0.5)]

    def predict_quantiles(self, X: Any = None) -> np.ndarray:
        """The quantiles `quantiles_` of the values to come, (n, Q). X: as of predict."""
        return self._ahead(X)[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the values to come. X: as of predict; None for as many as y has."""
        values = values_of(y)
        told = self.predict(len(values) if X is None else X)
        return float(r2_score(values, told, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.allow_nan = False
        return tags

    def _ahead(self, X: Any) -> tuple[np.ndarray, tuple[float, ...]]:
        """Quantiles of the steps that are asked for."""
        check_is_fitted(self)
        horizon, names = self.horizon_, self._past.names
        if X is None or np.ndim(X) < 2:
            steps = self._steps(X)
            if names:
                raise BadData(f"X must have a row for each of the {horizon} steps to come, with {', '.join(names)}")
            found, quantiles = self._quantiles(np.zeros((horizon, 0)))
            return found[steps - 1], quantiles
        known = self._past.known_of(X, len(X))
        if len(known) > horizon or (names and len(known) < horizon):
            raise BadData(
                f"X has {len(known)} rows, and the forecaster tells {horizon} steps at a time; give "
                f"{'as many' if names else 'no more'}, or fit it with horizon={len(known)}"
            )
        found, quantiles = self._quantiles(known if names else np.zeros((horizon, 0)))
        return found[: len(known)], quantiles

    def _steps(self, X: Any) -> np.ndarray:
        """The numbers of the steps that are asked for, from 1 on."""
        if X is None:
            return np.arange(1, self.horizon_ + 1)
        steps = np.arange(1, int(X) + 1) if np.ndim(X) == 0 and _is_whole(X) else np.asarray(X)
        if not _is_whole(steps) or not len(steps) or steps.min() < 1 or steps.max() > self.horizon_:
            raise BadData(
                f"X must say how many steps or which of them, from 1 to horizon_ = {self.horizon_}, found {X!r}"
            )
        return steps

    def _quantiles(self, ahead: np.ndarray) -> tuple[np.ndarray, tuple[float, ...]]:
        return quantiles_ahead(self.run_, self._past.columns(ahead))

    def _horizon(self, step: np.timedelta64) -> int:
        season = self._settings().get("season")
        horizon = usual(step, season)[1] if self.horizon is None else self.horizon
        if not _is_whole(horizon) or horizon < 1:
            raise BadSetting(f"horizon={self.horizon!r} must be a whole number of steps, 1 or more")
        return int(horizon)

    def _tail(self, n: int, horizon: int, step: np.timedelta64) -> str:
        """What is held out: the end, of what is fitted at once as little as one forecast takes."""
        # Within days forecasts begin once a horizon, so that the first may begin almost one later.
        least = 2 * horizon - 1 if is_by_the_day(step) else horizon
        steps = least if is_fitted_at_once(self.model) else max(least, round(SHARE * n))
        return f"tail:{min((steps + 0.5) / n, 0.99):.9f}"


def _is_whole(value: Any) -> bool:
    return np.issubdtype(np.asarray(value).dtype, np.integer)
