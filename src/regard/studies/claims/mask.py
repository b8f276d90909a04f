"""Without a mask a language model reads the word that it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.model import logits_of
from regard.core.registry import entry
from regard.data.corpus import prepare
from regard.models.language import LanguageModelConfig
from regard.studies.claims.fitting import fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

LENGTH, ROWS = 48, 16


@register_study
class Mask(Study):
    id: ClassVar[str] = "mask"
    claim: ClassVar[str] = "Without the causal mask the training loss goes to zero and the model cannot write."
    source: ClassVar[str] = "lecture notes on causal self-attention: to look at the next word would be cheating"
    rule: ClassVar[str] = (
        "the training loss without the mask ends below a tenth of that with it, and reading left to right, as writing "
        "must, its held-out loss is above that of the masked model"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        corpus = prepare("world:stories?train=2000&valid=100", seed=lab.seed)
        ids = torch.from_numpy(corpus.train.ids.astype("int64")).to(lab.device)
        held = torch.from_numpy(corpus.valid.ids.astype("int64"))[: 60 * LENGTH].view(-1, LENGTH).to(lab.device)

        def batch(step: int) -> tuple[Tensor, Tensor]:
            starts = torch.randint(len(ids) - LENGTH - 1, (ROWS,), generator=torch.Generator().manual_seed(step))
            rows = torch.stack([ids[start : start + LENGTH + 1] for start in starts.tolist()])
            return rows[:, :-1], rows[:, 1:]

        found: dict[str, Any] = {}
        for name, causal in (("masked", True), ("unmasked", False)):
            torch.manual_seed(lab.seed)
            model = _config(corpus.tokenizer.vocab_size, causal).build().to(lab.device)
            losses = fit(model, batch, lab.pick(500, 800, 1500), 3e-3)
            every = max(1, len(losses) // 60)
            found[name] = {"train": sum(losses[-20:]) / 20, "curve": losses[::every], "every": every}
            found[name]["left_to_right"] = _left_to_right(model, held)
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        return judged(
            found,
            lambda one: (
                one["unmasked"]["train"] < one["masked"]["train"] / 10
                and one["unmasked"]["left_to_right"] > one["masked"]["left_to_right"]
            ),
            f"training loss {mean(found, 'unmasked', 'train'):.3f} without the mask and "
            f"{mean(found, 'masked', 'train'):.3f} with it; left to right on held-out text "
            f"{mean(found, 'unmasked', 'left_to_right'):.2f} and {mean(found, 'masked', 'left_to_right'):.2f}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lines = []
        for name in ("masked", "unmasked"):
            one = found[0][name]
            lines.append(Series(name, [(place * one["every"], loss) for place, loss in enumerate(one["curve"])]))
        return line_chart("Training loss with and without the mask", lines, Axis("steps"), Axis("nats a token"))


def _config(vocab_size: int, causal: bool) -> LanguageModelConfig:
    """A small Transformer, with or without the mask and alike in all else."""
    config: Any = entry("gpt").config(vocab_size, "tiny", d_model=64, n_layers=2, n_heads=4)
    layers = tuple(replace(layer, mixer=replace(layer.mixer, causal=causal)) for layer in config.stack.layers)
    return replace(config, stack=replace(config.stack, layers=layers))


@torch.no_grad()
def _left_to_right(model: nn.Module, held: Tensor) -> float:
    """The mean loss of each token from those before it alone, as when writing."""
    total = 0.0
    for t in range(1, held.shape[1]):
        last = logits_of(model, held[:, :t])[:, -1].log_softmax(-1)
        total -= float(last.gather(1, held[:, t : t + 1]).mean())
    return total / (held.shape[1] - 1)
