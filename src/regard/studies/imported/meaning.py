"""A word's vector tells its sense: in a model that has read much the nearest labelled example is of the same one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.data.source import read_lines
from regard.errors import DataError
from regard.explain.probe import placed_words, word_vectors
from regard.run.run import Run
from regard.studies.claims.study import Found, Lab, Verdict, judged, mean
from regard.studies.imported.study import StudyOnRun

COLUMNS = 5


@dataclass(frozen=True)
class Use:
    """A word in a sentence of words, at a place counted from 0, and its sense."""

    word: str
    sense: str
    place: int
    sentence: str


class MeaningOnRun(StudyOnRun):
    id: ClassVar[str] = "meaning"
    claim: ClassVar[str] = (
        "The sense of a word is in its vector: of labelled examples of the word the nearest one has the same sense, "
        "after the layers and not before them."
    )
    source: ClassVar[str] = "Loureiro, Rezaee, Pilehvar, Camacho-Collados 2021, CoarseWSD-20; nearest neighbour"
    rule: ClassVar[str] = (
        "averaged over the words, after some layer the nearest example has the right sense at least 85 per cent of the "
        "time, at least 10 points more often than the most frequent sense is right and at least 20 points more often "
        "than before the first layer"
    )
    form: ClassVar[str] = "a table of word, number of sense, name of sense, place of the word and sentence"

    def measure(self, lab: Lab) -> dict[str, Any]:
        run, by_word = self.run(lab), defaultdict(list)
        for use in self.rows:
            by_word[use.word].append(use)
        each = lab.pick(20, 40, 100)
        found: dict[str, list[float]] = defaultdict(list)
        for word, uses in sorted(by_word.items()):
            chosen = Random(f"{lab.seed} {word}").sample(uses, min(len(uses), 2 * each))
            known, asked = _read(run, chosen[: len(chosen) // 2]), _read(run, chosen[len(chosen) // 2 :])
            if not known[0] or not asked[0]:
                continue
            most = Counter(known[0]).most_common(1)[0][0]
            found["most frequent"].append(sum(sense == most for sense in asked[0]) / len(asked[0]))
            for layer, vectors in known[1].items():
                found[layer].append(_nearest(vectors, known[0], asked[1][layer], asked[0]))
        if not found:
            raise DataError(f"{self.data}: no word of it is read by {self.path} with two uses or more")
        return {"words": len(found["most frequent"]), "right": {key: sum(one) / len(one) for key, one in found.items()}}

    def judge(self, found: Sequence[Found]) -> Verdict:
        layers = _layers(found[0])
        told = ", ".join(f"{layer} {mean(found, 'right', layer):.1%}" for layer in layers)
        most = mean(found, "right", "most frequent")
        return judged(found, _is_met, f"the nearest example is right: {told}; the most frequent sense {most:.1%}")

    def figure(self, found: Sequence[Found]) -> str:
        layers = _layers(found[0])
        lines = [
            Series("nearest example", [(i, mean(found, "right", layer)) for i, layer in enumerate(layers)]),
            Series("most frequent sense", [(i, mean(found, "right", "most frequent")) for i in range(len(layers))]),
        ]
        return line_chart("Senses told rightly, by layer", lines, Axis("layer"), Axis("share right", low=0.4, high=1.0))

    def read(self, path: str) -> list[Use]:
        found = []
        for number, line in enumerate(read_lines(path), 1):
            cells = line.split("\t")
            if len(cells) != COLUMNS or not cells[3].isdecimal() or int(cells[3]) >= len(cells[4].split(" ")):
                raise DataError(f"{path}, line {number}: expected {self.form}, separated by tabs")
            found.append(Use(cells[0], cells[2], int(cells[3]), cells[4]))
        return found


FORM = MeaningOnRun


def _layers(found: Found) -> list[str]:
    return [name for name in found["right"] if name != "most frequent"]


def _is_met(one: Found) -> bool:
    right = one["right"]
    best = max(right[name] for name in _layers(one) if name != "before")
    return best >= 0.85 and best >= right["most frequent"] + 0.1 and best >= right["before"] + 0.2


def _read(run: Run, uses: Sequence[Use]) -> tuple[list[str], dict[str, Tensor]]:
    """The senses of those uses that the run reads word by word, and the vectors (n, D) of the word by layer."""
    senses, rows, places = [], [], []
    for use in uses:
        ids, found = placed_words(run, use.sentence.split(" "))
        room: int | None = getattr(run.model, "max_length", None)
        if found is not None and (room is None or len(ids) <= room):
            senses.append(use.sense)
            rows.append(ids)
            places.append([found[use.place]])
    return senses, word_vectors(run, rows, places) if rows else {}


def _nearest(known: Tensor, senses: list[str], asked: Tensor, truth: list[str]) -> float:
    """How often the example with the largest cosine has the right sense."""
    one, other = (torch.nn.functional.normalize(part.double(), dim=-1) for part in (asked, known))
    best = (one @ other.T).argmax(-1).tolist()
    return sum(senses[place] == sense for place, sense in zip(best, truth, strict=True)) / len(truth)
