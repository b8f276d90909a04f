"""Mamba: a state space that selects copies what matters, and finds what followed a mark at any length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.data.worlds.probe import Induction, SelectiveCopy
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.s4d import S4dConfig
from regard.models.language import LanguageModelConfig
from regard.studies.claims.fitting import Rows, fit, right
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.timing import exponent, seconds_of_each
from regard.studies.registry import register_study

TIMES = (1, 2, 4, 8, 16)
OptimiserName = Literal["adamw", "muon"]
# Induction over 64 words and more was learnt by AdamW and not by Muon at 5e-3.
MUON: tuple[OptimiserName, float] = ("muon", 1e-2)
ADAMW: tuple[OptimiserName, float] = ("adamw", 5e-3)


@register_study
class Selection(Study):
    id: ClassVar[str] = "selection"
    claim: ClassVar[str] = (
        "A selective state space copies words from among noise where a time-invariant one cannot, and an induction "
        "head learnt by it works at many times the trained length, where attention with learned positions fails."
    )
    source: ClassVar[str] = "Gu, Dao 2023, Mamba: 4.1 and tables 1 and 2; on world:selective_copy and world:induction"
    rule: ClassVar[str] = (
        "of the copied words S6 gets at least 95 per cent right and S4D under 60; at 16 times the trained length the "
        "selective model answers at least 95 per cent rightly, and attention with learned positions under 60; time of "
        "the selective layer grows with a power of the length of 1 within 0.3"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        d_model = lab.pick(32, 32, 64)
        found: dict[str, Any] = {"time_exponent": _time_exponent(lab)}
        copy = SelectiveCopy(
            train=lab.pick(1500, 6000, 8000),
            valid=256,
            length=lab.pick(24, 32, 256),
            words=lab.pick(4, 6, 16),
            kinds=lab.pick(4, 8, 16),
        )
        rows = Rows(copy, lab)
        found["copy"] = {
            name: right(_fitted(rows, mixer, lab.pick(250, 500, 2500), lab), rows.valid)
            for name, mixer in (("s6", MambaConfig(d_model, 16)), ("s4d", S4dConfig(d_model, 32)))
        }
        length = lab.pick(16, 16, 64)
        task = {"kinds": 8, "valid": lab.pick(100, 200, 100)}
        rows = Rows(Induction(train=lab.pick(1500, 6000, 6000), length=length, **task), lab)
        longer = [Rows(Induction(train=1, length=times * length, **task), lab).valid for times in TIMES]
        attention = AttentionConfig(d_model, 4)
        table = PositionConfig(d_model, "learned", TIMES[-1] * length + 2)
        forms = {"mamba": (MambaConfig(d_model, 16), None), "attention": (attention, table)}
        found["lengths"] = [times * length for times in TIMES]
        for name, (mixer, position) in forms.items():
            model = _fitted(rows, mixer, lab.pick(250, 500, 1000), lab, position, lab.pick(MUON, MUON, ADAMW))
            found[name] = [right(model, part) for part in longer]
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        far = {name: mean([{"v": one[name][-1]} for one in found], "v") for name in ("mamba", "attention")}
        near = {name: mean([{"v": one[name][0]} for one in found], "v") for name in ("mamba", "attention")}
        return judged(
            found,
            lambda one: (
                one["copy"]["s6"] >= 0.95
                and one["copy"]["s4d"] < 0.6
                and one["mamba"][-1] >= 0.95
                and one["attention"][-1] < 0.6
                and abs(one["time_exponent"] - 1) <= 0.3
            ),
            f"words copied: S6 {mean(found, 'copy', 's6'):.2f}, S4D {mean(found, 'copy', 's4d'):.2f}; induction "
            f"at the trained length and 16 times it: mamba {near['mamba']:.2f} and {far['mamba']:.2f}, attention with "
            f"learned positions {near['attention']:.2f} and {far['attention']:.2f}; time grows with power "
            f"{mean(found, 'time_exponent'):.2f}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lengths = found[0]["lengths"]
        lines = [
            Series(name, [(n, sum(one[name][i] for one in found) / len(found)) for i, n in enumerate(lengths)])
            for name in ("mamba", "attention")
        ]
        axes = Axis("length, in tokens", log=True), Axis("share right", low=0.0, high=1.0)
        return line_chart(f"Induction heads trained at {lengths[0]} words", lines, *axes)


def _fitted(
    rows: Rows,
    mixer: MixerConfig,
    steps: int,
    lab: Lab,
    position: PositionConfig | None = None,
    rule: tuple[OptimiserName, float] = MUON,
) -> nn.Module:
    """Two blocks of the mixer alone, with no other net between them, trained on what is asked for."""
    torch.manual_seed(lab.seed)
    width, norm = mixer.d_model, NormConfig(mixer.d_model, "rms")
    block = BlockConfig(width, mixer, norm=norm)
    embedding = EmbeddingConfig(rows.vocab_size, width, position)
    model = LanguageModelConfig(embedding, StackConfig(width, (block, block)), norm).build().to(lab.device)
    fit(model, rows.batches(lab.pick(32, 32, 64)), steps, rule[1], optimiser=rule[0])
    return model


def _time_exponent(lab: Lab) -> float:
    """The power of the length with which the time of one selective layer grows."""
    lengths = lab.pick([512, 1024, 2048], [512, 1024, 2048, 4096], [4096, 8192, 16384, 32768])
    mixer = MambaConfig(32, 16).build().to(lab.device)

    def work(x: Tensor) -> Tensor:
        with torch.no_grad():
            return mixer(x)[0]

    inputs = [torch.randn(1, length, 32).to(lab.device) for length in lengths]
    return exponent(lengths, seconds_of_each([lambda x=x: work(x) for x in inputs], 5))
