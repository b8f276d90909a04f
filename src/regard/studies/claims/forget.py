"""A recurrence forgets what was said long ago, and attention does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.registry import build
from regard.studies.claims.fitting import accuracy, fit
from regard.studies.claims.recall import letter_rows, recall_by_distance, story_rows
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

HELD_OUT = 10**6
RIGHT, LEARNT, CHANCE = 0.95, 0.75, 0.6
WIDE: dict[str, Any] = {"d_model": 64, "n_layers": 1}
ON_LETTERS: dict[str, dict[str, Any]] = {
    "rnn": WIDE,
    "lstm": WIDE,
    "gpt": {"d_model": 32, "n_layers": 1, "n_heads": 2, "position": "learned", "max_length": 512},
}
ON_STORIES: dict[str, dict[str, Any]] = {"rnn": WIDE, "lstm": WIDE, "gpt": {"d_model": 64, "n_layers": 2, "n_heads": 2}}


@register_study
class Forget(Study):
    id: ClassVar[str] = "forget"
    claim: ClassVar[str] = "A recurrence forgets over long strings, an LSTM later than a plain one; attention does not."
    source: ClassVar[str] = (
        "lectures on RNNs and LSTMs: they forget over long strings, as the name at the beginning of a story"
    )
    rule: ClassVar[str] = (
        "the first of the longest A/B strings is recalled below 60% by the RNN (chance is 50%), by attention above 95% "
        "at every length, and the LSTM stays above 75% at least as far as the RNN; in stories attention recalls from "
        "the farthest distances at least 20 points more often than the RNN"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        return {"letters": self._letters(lab), "stories": self._stories(lab)}

    def _letters(self, lab: Lab) -> dict[str, dict[str, float]]:
        """Accuracy by model and length, each model trained for each length."""
        found: dict[str, dict[str, float]] = {name: {} for name in ON_LETTERS}
        for length in lab.pick((5, 40), (5, 20, 40), (5, 20, 80, 200)):

            def rows(step: int, count: int = 32, length: int = length) -> tuple[Tensor, Tensor]:
                inputs, targets = letter_rows(count, length, HELD_OUT * (lab.seed + 1) + step)
                return inputs.to(lab.device), targets.to(lab.device)

            for name, settings in ON_LETTERS.items():
                torch.manual_seed(lab.seed)
                model = build(name, vocab_size=3, size="tiny", **settings).to(lab.device)
                fit(model, rows, lab.pick(200, 300, 600), 3e-3)
                found[name][str(length)] = accuracy(model, *rows(-1, 1000))
        return found

    def _stories(self, lab: Lab) -> dict[str, dict[str, float]]:
        """The share of words recalled, by model and distance."""
        train, held = story_rows(lab.pick(4, 4, 10), lab.pick((1500, 150), (3000, 200), (4000, 400)), lab.seed)
        found = {}
        for name, settings in ON_STORIES.items():
            torch.manual_seed(lab.seed)
            model = build(name, vocab_size=train.vocab_size, size="tiny", **settings).to(lab.device)
            fit(model, train.batches(16, lab.device), lab.pick(250, 700, 1200), 3e-3)
            found[name] = recall_by_distance(model, held, lab.device)
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        length, distance = list(found[0]["letters"]["rnn"])[-1], list(found[0]["stories"]["rnn"])[-1]
        told = ", ".join(f"{name} {mean(found, 'letters', name, length):.0%}" for name in ON_LETTERS)
        also = ", ".join(f"{name} {mean(found, 'stories', name, distance):.0%}" for name in ON_STORIES)
        reason = (
            f"first of {length} letters: {told}; in stories from {int(distance) // 2 + 1} to {distance} words: {also}"
        )
        return judged(found, _is_met, reason)

    def figure(self, found: Sequence[Found]) -> str:
        lines = [
            Series(
                f"{name}, {task}", [(float(place), mean(found, task, name, place)) for place in found[0][task][name]]
            )
            for task in ("letters", "stories")
            for name in found[0][task]
        ]
        return line_chart(
            "Recall by distance", lines, Axis("tokens in between", log=True), Axis("share right", low=0, high=1)
        )


def _is_met(one: Found) -> bool:
    letters, stories = one["letters"], {name: list(by.values()) for name, by in one["stories"].items()}
    reach = {
        name: max((int(k) for k, right in by.items() if right > LEARNT), default=0) for name, by in letters.items()
    }
    return (
        list(letters["rnn"].values())[-1] < CHANCE
        and min(letters["gpt"].values()) > RIGHT
        and reach["lstm"] >= reach["rnn"]
        and stories["gpt"][-1] >= stories["rnn"][-1] + 0.2
    )
