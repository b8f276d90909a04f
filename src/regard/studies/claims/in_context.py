"""In-context learning: a mapping that no weight knows is read off its examples."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.model import logits_of
from regard.data.batch import NOT_COUNTED
from regard.studies.claims.fitting import fitted
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged
from regard.studies.registry import register_study

LETTERS = 4
EXAMPLES = (0, 1, 4, 16)
ROWS = 32
RATES = (3e-3, 1e-2)
NAMES = ("large", "small", "lstm")


@register_study
class InContext(Study):
    id: ClassVar[str] = "in_context"
    claim: ClassVar[str] = (
        "A Transformer trained on many tasks does a new one from examples in its prompt, better with more examples; "
        "larger models gain more from them, and an LSTM gains less."
    )
    source: ClassVar[str] = "Brown et al. 2020, GPT-3: figures 1.2 and 3.1; on generated mappings of strings"
    rule: ClassVar[str] = (
        "on mappings that were held out the share of right strings rises from 0 to 1 to 4 to 16 examples; from 0 to 16 "
        "the larger Transformer gains more than the smaller one and than the LSTM"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        seen, held = mappings(lab.seed)
        steps = lab.pick(160, 300, 700)
        sizes = {
            "large": ("gpt", {"d_model": lab.pick(64, 64, 128), "n_layers": lab.pick(2, 2, 4), "n_heads": 4}),
            "small": ("gpt", {"d_model": 8, "n_layers": 1, "n_heads": 1}),
            "lstm": ("lstm", {"d_model": lab.pick(48, 64, 192), "n_layers": 2}),
        }

        def batch(step: int) -> tuple[Tensor, Tensor]:
            inputs, targets = prompts(seen, lab.seed * 1_000_000 + step, ROWS)
            return inputs.to(lab.device), targets.to(lab.device)

        known, new = (
            tuple(part.to(lab.device) for part in prompts(maps, 7_000_000_000 + lab.seed, 512)) for maps in (seen, held)
        )
        found: dict[str, Any] = {}
        for name in NAMES:
            model, size = sizes[name]
            nets = [fitted(model, 2 * LETTERS, batch, lab, steps, size, rate) for rate in RATES]
            # The better rate is chosen on mappings that were seen.
            net = max(nets, key=lambda one: sum(by_examples(one, *known)))
            curve = by_examples(net, *new)
            found[name] = {"curve": curve, "gain": curve[EXAMPLES[-1]] - curve[0]}
            found[name]["parameters"] = sum(parameter.numel() for parameter in net.parameters())
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = "; ".join(
            f"{name} " + ", ".join(f"{sum(one[name]['curve'][k] for one in found) / len(found):.2f}" for k in EXAMPLES)
            for name in NAMES
        )
        return judged(
            found,
            lambda one: (
                all(b > a for a, b in itertools.pairwise(one["large"]["curve"][k] for k in EXAMPLES))
                and one["large"]["gain"] > max(one["small"]["gain"], one["lstm"]["gain"])
            ),
            f"held-out strings mapped rightly after 0, 1, 4 and 16 examples: {told}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        count = len(found[0]["large"]["curve"])
        lines = [
            Series(name, [(k, sum(one[name]["curve"][k] for one in found) / len(found)) for k in range(count)])
            for name in NAMES
        ]
        axes = Axis("examples in the prompt"), Axis("share right", low=0.0, high=1.0)
        return line_chart("New mappings from examples", lines, *axes)


def mappings(seed: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """All one-to-one maps of the letters, three quarters of them to be seen and one to be held out."""
    found = list(itertools.permutations(range(LETTERS)))
    Random(seed).shuffle(found)
    cut = len(found) * 3 // 4
    return found[:cut], found[cut:]


def prompts(maps: Sequence[tuple[int, ...]], seed: int, rows: int) -> tuple[Tensor, Tensor]:
    """Rows of 17 strings of two letters, each followed by its image, which is what is asked for.

    Letters of images are words of their own. Inputs lag behind by one, so that a target is asked at its own place.
    """
    generator = torch.Generator().manual_seed(seed)
    table = torch.tensor(maps)[torch.randint(len(maps), (rows,), generator=generator)]  # (B, letters)
    strings = torch.randint(LETTERS, (rows, EXAMPLES[-1] + 1, 2), generator=generator)
    images = table.gather(1, strings.flatten(1)).view_as(strings) + LETTERS
    text = torch.cat([strings, images], 2).flatten(1)
    targets = torch.cat([torch.full_like(strings, NOT_COUNTED), images], 2).flatten(1)
    return text[:, :-1], targets[:, 1:]


@torch.no_grad()
def by_examples(model: nn.Module, inputs: Tensor, targets: Tensor) -> list[float]:
    """The share of strings both of whose letters are right, by the number of examples before them."""
    right = logits_of(model, inputs).argmax(-1) == targets
    both = right[:, 2::4] & right[:, 1::4]
    return both.float().mean(0).tolist()
