"""Self-attention without positions cannot tell order: shuffled inputs give the same outputs, shuffled alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import bar_chart
from regard.core.registry import entry
from regard.data.batch import NOT_COUNTED
from regard.models.language import LanguageModelConfig
from regard.studies.claims.fitting import accuracy, fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

# (position, causal) of each form.
FORMS = {
    "none": ("none", False),
    "sinusoidal": ("sinusoidal", False),
    "learned": ("learned", False),
    "rotary": ("rotary", False),
    "alibi": ("alibi", False),
    "mask alone": ("none", True),
}
# ALiBi without a mask knows how far but not on which side; a mask alone says where only through what it hides.
MUST_LEARN = ("sinusoidal", "learned", "rotary")
LENGTH, WORDS, ROWS = 8, 16, 32


@register_study
class Order(Study):
    id: ClassVar[str] = "order"
    claim: ClassVar[str] = (
        "Self-attention without positions has no sense of order: shuffling the inputs shuffles the outputs and nothing "
        "else, so that a task that needs order cannot be learnt."
    )
    source: ClassVar[str] = "lecture on self-attention: no sense of order, and positions as the remedy"
    rule: ClassVar[str] = (
        "in float64 outputs of shuffled inputs are the shuffled outputs to 1e-12 without positions, and differ by more "
        "than 1e-3 with any of them or with a causal mask; asked for the word before each word, the model without "
        "positions is right at most 5 points above chance (1 / 7), and with sinusoidal, learned and rotary positions "
        "at least 95 per cent of the time"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        steps = lab.pick(250, 500, 500)
        tests = _batch(10_000_000 + lab.seed, 512)
        found: dict[str, Any] = {"chance": 1 / (LENGTH - 1)}
        for name, (position, causal) in FORMS.items():
            torch.manual_seed(lab.seed)
            config = _config(position, causal)
            error = shuffle_error(config, lab.seed)
            model = config.build().to(lab.device)

            def batch(step: int) -> tuple[Tensor, Tensor]:
                inputs, targets = _batch(lab.seed * 1_000_000 + step, ROWS)
                return inputs.to(lab.device), targets.to(lab.device)

            fit(model, batch, steps, 3e-3)
            right = accuracy(model, *(part.to(lab.device) for part in tests))
            found[name] = {"shuffle_error": error, "accuracy": right}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        right = ", ".join(f"{name} {mean(found, name, 'accuracy'):.2f}" for name in FORMS)
        return judged(
            found,
            _met,
            f"largest error of shuffling {max(one['none']['shuffle_error'] for one in found):.1e} without positions, "
            f"at least {min(one[name]['shuffle_error'] for one in found for name in FORMS if name != 'none'):.3f} with "
            f"them; word before named rightly: {right}, chance {found[0]['chance']:.2f}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        rows = [(name, mean(found, name, "accuracy")) for name in FORMS] + [("chance", found[0]["chance"])]
        return bar_chart("Naming the word before each word", rows, "share right, by kind of position")


def _met(one: Found) -> bool:
    return (
        one["none"]["shuffle_error"] < 1e-12
        and all(one[name]["shuffle_error"] > 1e-3 for name in FORMS if name != "none")
        and one["none"]["accuracy"] <= one["chance"] + 0.05
        and all(one[name]["accuracy"] >= 0.95 for name in MUST_LEARN)
    )


def shuffle_error(config: LanguageModelConfig, seed: int) -> float:
    """The largest difference between outputs of shuffled inputs and shuffled outputs, in float64."""
    torch.manual_seed(seed)
    model = config.build().double()
    # Larger than at the start of training, so that a sense of order that is there shows.
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    tokens = torch.randint(WORDS, (4, LENGTH))
    shuffled = torch.randperm(LENGTH)
    with torch.no_grad():
        return float((model(tokens[:, shuffled]) - model(tokens)[:, shuffled]).abs().max())


def _batch(seed: int, rows: int) -> tuple[Tensor, Tensor]:
    """Rows of different words, and the word before each; whatever the words, all others are equally likely."""
    words = torch.rand(rows, WORDS, generator=torch.Generator().manual_seed(seed)).argsort(1)[:, :LENGTH]
    return words, words.roll(1, 1).index_fill(1, torch.tensor([0]), NOT_COUNTED)


def _config(position: str, causal: bool) -> LanguageModelConfig:
    """A small Transformer, looking both ways unless `causal`."""
    sizes = {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_length": LENGTH}
    config: Any = entry("gpt").config(WORDS, "tiny", position=position, **sizes)
    layers = tuple(replace(layer, mixer=replace(layer.mixer, causal=causal)) for layer in config.stack.layers)
    return replace(config, stack=replace(config.stack, layers=layers))
