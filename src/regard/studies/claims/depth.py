"""Residual connections and norms let deep stacks learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.stack import BlockConfig, StackConfig
from regard.data.corpus import prepare
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.attention import AttentionConfig
from regard.models.language import LanguageModelConfig
from regard.studies.claims.fitting import Batches, fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

WIDTH, LENGTH, ROWS = 32, 24, 8
DEPTHS = (2, 4, 8)
NOISE = 0.15
RATES = (1e-2, 3e-3, 1e-3)
LETTERS = 16


@register_study
class Depth(Study):
    id: ClassVar[str] = "depth"
    claim: ClassVar[str] = (
        "Residual connections and layer norms make training faster and better, above all in deep nets that refine a "
        "representation; where input and output have nothing in common a shallow net gains little."
    )
    source: ClassVar[str] = (
        "lectures on the Transformer block and on sequence shapes; text with wrong words put right, from world:stories"
    )
    rule: ClassVar[str] = (
        "at depth 8 the stack with residuals and norms ends with the lowest loss of the four, each at its best "
        "learning rate of three, and without residuals the loss is at least a tenth higher; the gain of "
        "residuals at depth 2 on random labels is reported"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        corpus = prepare("world:stories?train=2000&valid=100", seed=lab.seed)
        ids = torch.from_numpy(corpus.train.ids.astype("int64"))
        vocab_size = corpus.tokenizer.vocab_size
        depths = DEPTHS[-1:] if lab.scale == "quick" else DEPTHS
        steps = lab.pick(100, 200, 250)

        def best(batches: Batches, size: int, depth: int, residual: bool, norm: bool) -> float:
            """The last training loss at the best rate: of three where it is judged, of one elsewhere."""
            losses = []
            for rate in RATES if depth == DEPTHS[-1] else RATES[1:2]:
                torch.manual_seed(lab.seed)
                model = _config(size, depth, residual, norm).build().to(lab.device)
                losses.append(sum(fit(model, batches, steps, rate)[-20:]) / 20)
            return min(losses)

        refine, relabel = _repairs(ids, vocab_size, lab), _random_labels(lab)
        found: dict[str, Any] = {"depths": list(depths), "residual": {}, "bare": {}}
        for depth in depths:
            found["residual"][str(depth)] = best(refine, vocab_size, depth, True, True)
            found["bare"][str(depth)] = best(refine, vocab_size, depth, False, True)
        found["without norm"] = best(refine, vocab_size, 8, True, False)
        found["without both"] = best(refine, vocab_size, 8, False, False)
        found["relabel"] = {"residual": best(relabel, LETTERS, 2, True, True)}
        found["relabel"]["bare"] = best(relabel, LETTERS, 2, False, True)
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        gains = [one["relabel"]["bare"] - one["relabel"]["residual"] for one in found]
        shallow = f"{sum(gains) / len(gains):+.3f} nats ({min(gains):+.3f} to {max(gains):+.3f})"
        return judged(
            found,
            lambda one: (
                one["residual"]["8"] < min(one["bare"]["8"], one["without norm"], one["without both"])
                and one["bare"]["8"] >= 1.1 * one["residual"]["8"]
            ),
            f"loss at depth 8: {mean(found, 'residual', '8'):.2f} with both, {mean(found, 'without norm'):.2f} without "
            f"norms, {mean(found, 'bare', '8'):.2f} without residuals, {mean(found, 'without both'):.2f} without "
            f"either; on random labels at depth 2 residuals gain {shallow}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lines = [
            Series(label, [(depth, mean(found, key, str(depth))) for depth in found[0]["depths"]])
            for key, label in (("residual", "with residuals"), ("bare", "without"))
        ]
        lines += [Series(key, [(8, mean(found, key))]) for key in ("without norm", "without both")]
        return line_chart("Loss by depth", lines, Axis("layers"), Axis("nats a token"))


def _config(vocab_size: int, depth: int, residual: bool, norm: bool) -> LanguageModelConfig:
    """A Transformer that looks both ways, started as torch does: GPT-2's small start is made for residuals."""
    normalise = NormConfig(WIDTH) if norm else None
    attention = AttentionConfig(WIDTH, 4, causal=False, position="rotary")
    block = BlockConfig(WIDTH, attention, MlpConfig(WIDTH, 4 * WIDTH), normalise, residual=residual)
    return LanguageModelConfig(EmbeddingConfig(vocab_size, WIDTH), StackConfig(WIDTH, (block,) * depth), normalise)


def _repairs(ids: Tensor, vocab_size: int, lab: Lab) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Text in which some words are replaced by random ones; the targets are the words that stood there."""

    def batch(step: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(lab.seed * 1_000_000 + step)
        starts = torch.randint(len(ids) - LENGTH, (ROWS,), generator=generator)
        rows = torch.stack([ids[start : start + LENGTH] for start in starts.tolist()])
        wrong = torch.rand(rows.shape, generator=generator) < NOISE
        random = torch.randint(vocab_size, rows.shape, generator=generator)
        return torch.where(wrong, random, rows).to(lab.device), rows.to(lab.device)

    return batch


def _random_labels(lab: Lab) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Random letters, each with a label that a random table gives to it and the letter before it."""
    table = torch.randint(LETTERS, (LETTERS, LETTERS), generator=torch.Generator().manual_seed(lab.seed))

    def batch(step: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(lab.seed * 1_000_000 + step)
        rows = torch.randint(LETTERS, (ROWS, LENGTH), generator=generator)
        return rows.to(lab.device), table[rows.roll(1, 1), rows].to(lab.device)

    return batch
