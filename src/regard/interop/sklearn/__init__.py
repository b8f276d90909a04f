"""Estimators of scikit-learn that are runs of regard: in pipelines, grid searches and cross-validation.

    from regard.interop.sklearn import SequenceClassifier
    model = SequenceClassifier("linear").fit(texts, labels)
    model.predict_proba(["a fine film"])

They need `pip install 'regard[sklearn]'`; nothing else of regard imports scikit-learn. See docs/sklearn.md.
"""

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError(
        "regard.interop.sklearn needs scikit-learn, which is not installed; pip install 'regard[sklearn]'"
    ) from None

from regard.interop.sklearn.classifier import SequenceClassifier
from regard.interop.sklearn.forecaster import SeriesForecaster
from regard.interop.sklearn.tagger import SequenceTagger
from regard.interop.sklearn.vectors import TextVectors

__all__ = ["SequenceClassifier", "SequenceTagger", "SeriesForecaster", "TextVectors"]
