"""What the layers of a model that has read much know of the parts of speech: linear probes, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar

import torch

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.data.settings import DataSettings
from regard.explain.layers import AFTER, BEFORE
from regard.explain.probe import accuracy, read_words
from regard.studies.claims.study import Found, Lab, Verdict, judged, mean
from regard.studies.imported.study import StudyOnRun
from regard.tasks.tagged import TaggedText


class LayersOnRun(StudyOnRun):
    id: ClassVar[str] = "bert_layers"
    claim: ClassVar[str] = "Parts of speech are told best from the middle layers of a model that has read much."
    source: ClassVar[str] = "Rogers, Kovaleva, Rumshisky 2020, BERTology: section 4.3; linear probes"
    rule: ClassVar[str] = (
        "of the layers that which tells the tags best is not above two thirds of the depth, and is at least 5 points "
        "better than the vectors before the first layer and better than the last layer"
    )
    form: ClassVar[str] = "tagged sentences as regard train reads them"

    def measure(self, lab: Lab) -> dict[str, Any]:
        run = self.run(lab)
        count = lab.pick(100, 400, 1000)
        sentences = Random(lab.seed).sample(self.rows, min(len(self.rows), count))
        told = read_words(run, sentences, self.data or "")
        names = sorted(set(told.tags))
        tags = torch.tensor([names.index(tag) for tag in told.tags])
        held = told.sentence % 2 == 1
        right = {layer: accuracy(one, tags, held, len(names)) for layer, one in told.vectors.items() if layer != AFTER}
        return {"right": right}

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(f"{layer} {mean(found, 'right', layer):.1%}" for layer in found[0]["right"])
        return judged(found, _is_met, f"tags told rightly: {told}")

    def figure(self, found: Sequence[Found]) -> str:
        points = [(i, mean(found, "right", layer)) for i, layer in enumerate(found[0]["right"])]
        return line_chart("Tags told rightly, by layer", [Series("probe", points)], Axis("layer"), Axis("share right"))

    def read(self, path: str) -> list[Any]:
        return list(TaggedText().examples(path, DataSettings(), 0))


FORM = LayersOnRun


def _is_met(one: Found) -> bool:
    right = dict(one["right"])
    before = right.pop(BEFORE)
    layers = list(right.values())
    best = max(range(len(layers)), key=layers.__getitem__)
    return best + 1 <= 2 * len(layers) / 3 and layers[best] >= before + 0.05 and layers[best] > layers[-1]
