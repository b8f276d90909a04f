"""Few labels: a linear map of the vectors of a model that has read much, beside one of words that has read nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.data.source import read_lines
from regard.errors import DataError
from regard.explain.probe import accuracy
from regard.studies.claims.study import Found, Lab, Verdict, judged, mean
from regard.studies.imported.study import StudyOnRun

LABELS = (10, 100)
ASKED, DRAWS = 500, 5
STARTS = ("vectors", "words")
POINTS = 0.05


class PretrainingOnRun(StudyOnRun):
    id: ClassVar[str] = "pretraining"
    claim: ClassVar[str] = "A model that has read much needs fewer labels than one that has read nothing."
    source: ClassVar[str] = (
        "Radford, Narasimhan, Salimans, Sutskever 2018; here the weights stay as they are, and a linear map of one "
        "vector for each text learns from the labels, beside a linear map of its words and pairs of words"
    )
    rule: ClassVar[str] = (
        "with 10 labels and with 100, as the mean of 5 draws of them, the map of vectors is right at least 5 points "
        "more often than the map of words that learns from the same labels"
    )
    form: ClassVar[str] = "a table of label and text"

    def measure(self, lab: Lab) -> dict[str, Any]:
        run, random = self.run(lab), Random(lab.seed)
        needed = lab.pick(200, ASKED, ASKED) + DRAWS * max(LABELS)
        if len(self.rows) < needed or len({label for label, _ in self.rows}) < 2:
            raise DataError(f"{self.data}: {needed} texts of two labels or more are needed")
        chosen = random.sample(self.rows, needed)
        asked, pool = chosen[DRAWS * max(LABELS) :], chosen[: DRAWS * max(LABELS)]
        names = sorted({label for label, _ in chosen})
        vectors = torch.from_numpy(run.embed([text for _, text in [*pool, *asked]])).double()
        found: dict[str, dict[str, float]] = {start: {} for start in STARTS}
        for count in LABELS:
            right: dict[str, list[float]] = {start: [] for start in STARTS}
            for draw in range(DRAWS):
                learnt = list(range(draw * max(LABELS), draw * max(LABELS) + count))
                rows = [*learnt, *range(len(pool), len(chosen))]
                tags = torch.tensor([names.index([*pool, *asked][row][0]) for row in rows])
                held = np.arange(len(rows)) >= count
                words = _words([[*pool, *asked][row][1] for row in rows], count)
                right["vectors"].append(accuracy(vectors[rows], tags, held, len(names)))
                right["words"].append(accuracy(words, tags, held, len(names)))
            for start, values in right.items():
                found[start][str(count)] = sum(values) / len(values)
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = "; ".join(
            f"{start} " + ", ".join(f"{mean(found, start, str(n)):.1%} of {n}" for n in LABELS) for start in STARTS
        )
        return judged(found, _is_met, f"accuracy by labels: {told}")

    def figure(self, found: Sequence[Found]) -> str:
        lines = [Series(start, [(float(n), mean(found, start, str(n))) for n in LABELS]) for start in STARTS]
        return line_chart(
            "Accuracy by the number of labels", lines, Axis("labels", log=True), Axis("accuracy", low=0.5)
        )

    def read(self, path: str) -> list[tuple[str, str]]:
        found = []
        for number, line in enumerate(read_lines(path), 1):
            label, tab, text = line.partition("\t")
            if not tab or not label or not text.strip():
                raise DataError(f"{path}, line {number}: expected {self.form}, separated by a tab")
            found.append((label, text))
        return found


FORM = PretrainingOnRun


def _is_met(one: Found) -> bool:
    return all(one["vectors"][str(count)] >= one["words"][str(count)] + POINTS for count in LABELS)


def _words(texts: Sequence[str], learnt: int) -> Tensor:
    """Which words and pairs of words of the first `learnt` texts each text has, (n, F)."""
    grams = []
    for text in texts:
        words = text.lower().split()
        grams.append({*words, *pairwise(words)})
    known = {
        gram: place for place, gram in enumerate(sorted({one for part in grams[:learnt] for one in part}, key=str))
    }
    found = torch.zeros(len(texts), len(known), dtype=torch.float64)
    for row, part in enumerate(grams):
        places = [known[gram] for gram in part if gram in known]
        found[row, places] = 1.0
    return found
