"""S4D: a convolution that is a recurrence, and starts of its diagonal that remember far back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor, nn

from regard.charts.chart import bar_chart
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.data.batch import NOT_COUNTED
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.s4d import Initialisation, S4d, S4dConfig
from regard.models.language import LanguageModel, LanguageModelConfig
from regard.studies.claims.fitting import accuracy, fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

WIDTH, STATES = 32, 32
# A bit is held for so many tokens, and asked for so many bits later.
HELD, LATER = 32, 12
NAMES = ("lin", "inv", "legs", "real", "random", "lstm", "attention")


@register_study
class LongRange(Study):
    id: ClassVar[str] = "long_convolution"
    claim: ClassVar[str] = (
        "S4D is one map as a convolution and as a recurrence; it remembers over a thousand tokens where an LSTM does "
        "not, and how its diagonal starts decides."
    )
    source: ClassVar[str] = "Gu, Goel, Ré 2021, S4; Gu et al. 2022, S4D; on bits that are asked for 384 tokens later"
    rule: ClassVar[str] = (
        "convolution and recurrence agree to 1e-5 of the largest output; the state has the same size after any number "
        "of tokens; S4D-Lin is right more often than the LSTM; Lin and Inv are right more often than Real and random"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        length = lab.pick(512, 1024, 2048)
        rows, steps = lab.pick(4, 4, 32), lab.pick(60, 100, 500)
        found: dict[str, Any] = {"error": _recurrence_error(lab), "state_growth": _state_growth(lab), "right": {}}
        test = _batch(10_000_000 + lab.seed, 64, length, lab.device)
        for name in NAMES:
            torch.manual_seed(lab.seed)
            model = _model(name, length).to(lab.device)

            def batch(step: int) -> tuple[Tensor, Tensor]:
                return _batch(lab.seed * 100_000 + step, rows, length, lab.device)

            fit(model, batch, steps, 3e-3)
            parts = [accuracy(model, *(part[i : i + 16] for part in test)) for i in range(0, 64, 16)]
            found["right"][name] = sum(parts) / len(parts)
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(f"{name} {mean(found, 'right', name):.2f}" for name in NAMES)
        return judged(
            found,
            lambda one: (
                one["error"] < 1e-5
                and one["state_growth"] == 1
                and one["right"]["lin"] > one["right"]["lstm"]
                and min(one["right"][name] for name in ("lin", "inv"))
                > max(one["right"][name] for name in ("real", "random"))
            ),
            f"convolution and recurrence differ by {max(one['error'] for one in found):.1e}; bits told rightly "
            f"{HELD * LATER} tokens later: {told}, chance 0.50",
        )

    def figure(self, found: Sequence[Found]) -> str:
        rows = [(name, mean(found, "right", name)) for name in NAMES]
        return bar_chart(f"A bit, {HELD * LATER} tokens later", rows, "share right, chance 0.5")


def _model(name: str, length: int) -> LanguageModel:
    """Two blocks of one mixer over bits."""
    start: Initialisation = name if name in ("lin", "inv", "legs", "real") else "lin"
    mixers: dict[str, MixerConfig] = {"lstm": LstmConfig(WIDTH), "attention": AttentionConfig(WIDTH, 4)}
    mixer = mixers.get(name, S4dConfig(WIDTH, STATES, start))
    norm = NormConfig(WIDTH)
    block = BlockConfig(WIDTH, mixer, norm=norm)
    position = PositionConfig(WIDTH, "learned", length) if name == "attention" else None
    config = LanguageModelConfig(EmbeddingConfig(2, WIDTH, position), StackConfig(WIDTH, (block, block)), norm)
    model = config.build()
    if name == "random":
        for part in model.modules():
            if isinstance(part, S4d):
                # Decays around 1 and frequencies around 0, without the order of the others.
                nn.init.normal_(part.log_decay)
                nn.init.normal_(part.frequency)
    return model


def _batch(seed: int, rows: int, length: int, device: str) -> tuple[Tensor, Tensor]:
    """Bits, each held for HELD tokens; at its last token the bit of LATER bits before is asked for."""
    bits = torch.randint(2, (rows, length // HELD), generator=torch.Generator().manual_seed(seed))
    targets = torch.full((rows, length), NOT_COUNTED)
    targets[:, HELD - 1 :: HELD][:, LATER:] = bits[:, :-LATER]
    return bits.repeat_interleave(HELD, 1).to(device), targets.to(device)


def _recurrence_error(lab: Lab) -> float:
    """The largest difference between the convolution and step after step, as a part of the largest output."""
    torch.manual_seed(lab.seed)
    worst = 0.0
    for start in get_args(Initialisation):
        mixer = S4dConfig(WIDTH, STATES, start).build().to(lab.device)
        x = torch.randn(2, 256, WIDTH).to(lab.device)
        with torch.no_grad():
            at_once = mixer(x)
            state, steps = mixer.init_state(2), []
            for t in range(x.shape[1]):
                y, state = mixer.step(x[:, t], state)
                steps.append(y)
        error = (torch.stack(steps, 1) - at_once).abs().max() / at_once.abs().max()
        worst = max(worst, float(error))
    return worst


def _state_growth(lab: Lab) -> float:
    """How many times larger the state is after 1024 tokens than after one."""
    mixer = S4dConfig(WIDTH, STATES).build().to(lab.device)
    with torch.no_grad():
        sizes = [
            mixer(torch.randn(1, length, WIDTH).to(lab.device), mixer.init_state(1))[1].nbytes for length in (1, 1024)
        ]
    return sizes[1] / sizes[0]
