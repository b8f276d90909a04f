"""Learned positions fail beyond the trained length; what the others do there is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.model import logits_of
from regard.core.registry import build, entry
from regard.data.corpus import prepare
from regard.errors import UsageError
from regard.models.language import LanguageModelConfig
from regard.studies.claims.fitting import fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

POSITIONS = ("learned", "sinusoidal", "rotary", "alibi", "none")
ROWS, LENGTH, FARTHEST = 16, 64, 4


@register_study
class Length(Study):
    id: ClassVar[str] = "length"
    claim: ClassVar[str] = (
        "Learned positions do not reach beyond the length they were trained at; functions of the position can be "
        "computed there, and ALiBi loses least."
    )
    source: ClassVar[str] = "lecture on self-attention, position embeddings and encodings; on world:stories"
    rule: ClassVar[str] = (
        "a table of learned positions refuses a longer text; with untrained rows to spare its loss on positions up to "
        "twice the trained length is at least 0.3 nats above that on the trained second half; no other kind rises less "
        "than ALiBi. Numbers of sinusoidal, rotary and no positions are reported"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        corpus = prepare("world:stories?train=3000&valid=300&events=40", seed=lab.seed)
        ids = torch.from_numpy(corpus.train.ids.astype("int64")).to(lab.device)
        held = torch.from_numpy(corpus.valid.ids.astype("int64"))
        longest = FARTHEST * LENGTH
        held = held[: len(held) // (longest + 1) * (longest + 1)].view(-1, longest + 1)[:120].to(lab.device)

        def batch(step: int) -> tuple[Tensor, Tensor]:
            generator = torch.Generator().manual_seed(lab.seed * 1_000_000 + step)
            starts = torch.randint(len(ids) - LENGTH - 1, (ROWS,), generator=generator)
            rows = torch.stack([ids[start : start + LENGTH + 1] for start in starts.tolist()])
            return rows[:, :-1], rows[:, 1:]

        found: dict[str, Any] = {"refused": _refuses(corpus.tokenizer.vocab_size)}
        sizes = {"d_model": lab.pick(32, 64, 128), "n_layers": 2, "n_heads": 4, "max_length": longest}
        for kind in POSITIONS:
            torch.manual_seed(lab.seed)
            model = _config(corpus.tokenizer.vocab_size, kind, sizes).build().to(lab.device)
            fit(model, batch, lab.pick(300, 400, 800), 3e-3)
            losses = by_place(model, held)
            within = sum(losses[LENGTH // 2 : LENGTH]) / (LENGTH // 2)
            twice = sum(losses[LENGTH : 2 * LENGTH]) / LENGTH
            farther = sum(losses[2 * LENGTH :]) / (longest - 2 * LENGTH)
            # Eight places in a point of the curve.
            curve = [sum(losses[i : i + 8]) / 8 for i in range(0, longest, 8)]
            found[kind] = {"within": within, "twice": twice, "farther": farther, "rise": twice - within, "curve": curve}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(
            f"{kind} {mean(found, kind, 'within'):.2f} to {mean(found, kind, 'twice'):.2f} and "
            f"{mean(found, kind, 'farther'):.2f}"
            for kind in POSITIONS
        )
        return judged(
            found,
            lambda one: (
                one["refused"]
                and one["learned"]["rise"] >= 0.3
                and all(one["alibi"]["rise"] <= one[kind]["rise"] for kind in POSITIONS)
            ),
            f"loss on the trained second half, up to twice and up to four times the trained length: {told}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lines = [
            Series(kind, [(8 * i + 4, loss) for i, loss in enumerate(found[0][kind]["curve"])]) for kind in POSITIONS
        ]
        title = f"Loss by position, trained at {LENGTH} tokens"
        return line_chart(title, lines, Axis("position, in tokens"), Axis("nats a token"))


def _config(vocab_size: int, kind: str, sizes: dict[str, int]) -> LanguageModelConfig:
    """A small Transformer with that kind of positions."""
    config: Any = entry("gpt").config(vocab_size, "tiny", position=kind, **sizes)
    if kind != "sinusoidal":
        return config
    # Beside sinusoids of size 1 words must have that size too, as in Vaswani et al. 2017; of 0.02 they are drowned out.
    return replace(config, embedding_std=1.0)


def _refuses(vocab_size: int) -> bool:
    """Whether a table of LENGTH positions refuses one token more."""
    model = build("gpt", vocab_size=vocab_size, size="tiny", position="learned", max_length=LENGTH)
    try:
        model(torch.zeros(1, LENGTH + 1, dtype=torch.long))
    except UsageError:
        return True
    return False


@torch.no_grad()
def by_place(model: nn.Module, held: Tensor) -> list[float]:
    """The mean loss at each place of rows (B, T + 1)."""
    total = torch.zeros(held.shape[1] - 1, device=held.device)
    for rows in held.split(16):
        logits = logits_of(model, rows[:, :-1])
        total += cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none").view(len(rows), -1).sum(0)
    return (total / len(held)).tolist()
