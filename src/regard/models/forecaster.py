"""The forecaster: a past that is read, a horizon whose circumstances are known ahead, quantiles for each of its times.

    m = encoder(past)                                      values, circumstances, calendar, by the hour or the day
    f_h = [known_h ; the same hour of days before]         what is known of time h without any model
    y_h = decoder(W f_h ; m)                               all times at once: nothing is fed back
    q_h = a_h . f_h + V norm(y_h)                          a linear forecast and what the net adds, for each quantile

Every past is brought to a common level and spread first, and the forecast back, so that a market whose prices have
doubled looks like itself (Kim et al. 2022). form = "decoder_only" reads past and horizon as one causal sequence.

Glossary
m     memory        f_h  features of time h of the horizon        q_h  quantiles of its value        a_h  linear weights
lags  seasons back from which f_h takes the values of the same time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.data_spec import DataSpec
from regard.core.inputs import PastKnown
from regard.core.registry import register
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.state import State
from regard.core.tap import Traced
from regard.fitting.windows import CALENDAR
from regard.layers.embedding import NumbersConfig
from regard.layers.head import QuantileHead
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.cross import CrossAttentionConfig
from regard.mixers.given import GivenConfig
from regard.mixers.lstm import LstmConfig
from regard.models.encoder import EncoderConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.point_forecaster import QUANTILES

LEAST_SPREAD = 0.05


@dataclass(frozen=True)
class ForecasterConfig(Config, kind="forecaster"):
    """encoder: of the past; None for one causal stack over past and horizon. stack: over the horizon, or over both.

    n_known    numbers known ahead for each time, the calendar's 8 last.
    season     steps after which things repeat, such as 24 hours.
    lags       seasons back whose values are features.
    dropout    of the features and of the numbers that are read.
    level      seasons over which the level and the spread of a past are taken.
    """

    encoder: EncoderConfig | None
    stack: MixerConfig
    d_model: int
    n_known: int
    horizon: int
    season: int = 24
    lags: tuple[int, ...] = (1, 2, 3, 7)
    level: int = 7
    quantiles: tuple[float, ...] = QUANTILES
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check(self.n_known >= CALENDAR, f"n_known counts the calendar's {CALENDAR} numbers, found {self.n_known}")
        check(bool(self.lags) and min(self.lags) > 0, f"lags are seasons back, 1 or more of them, found {self.lags}")
        check(self.horizon <= self.season * min(self.lags), "the horizon is longer than the nearest lag")
        check(all(0 < q < 1 for q in self.quantiles), f"quantiles lie between 0 and 1, found {self.quantiles}")

    @property
    def n_measured(self) -> int:
        """Numbers known ahead beside the calendar."""
        return self.n_known - CALENDAR

    @property
    def n_features(self) -> int:
        return self.n_known + len(self.lags) * (1 + self.n_measured)

    def build(self) -> Forecaster:
        return Forecaster(self)


class Forecaster(Traced):
    """Past (B, S, 1 + K) and known ahead (B, H, K) to what its head makes quantiles (B, H, Q) of."""

    reads = "numbers"

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.config = config
        width, features = config.d_model, config.n_features
        self.encoder = config.encoder.build() if config.encoder else None
        self.stack = config.stack.build()
        inputs = features if config.encoder else features + 1
        self.features_to_vector = nn.Linear(inputs, width)
        self.past_to_vector = None if config.encoder else nn.Linear(1 + config.n_known, width)
        self.step = nn.Parameter(torch.empty(config.horizon, width))
        nn.init.normal_(self.step, std=0.02)
        self.norm = nn.LayerNorm(width)
        self.head = QuantileHead(width, config.quantiles)
        self.features_to_value = nn.Parameter(torch.zeros(config.horizon, features))
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        with torch.no_grad():
            # It begins as the mean of the two naive forecasts: yesterday, and the same day a week ago.
            near = [place for place, lag in enumerate(config.lags) if lag in (1, 7)]
            for place in near:
                self.features_to_value[:, config.n_known + place] = 1 / len(near)

    @property
    def max_length(self) -> int | None:
        return None

    def forward(
        self, inputs: PastKnown, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B H _"], State | None]:
        """norm(y_h), a_h . f_h, level and spread side by side, (B, H, D + 3)."""
        past, ahead, level, spread = self._levelled(inputs.past, inputs.known)
        features = self._features(past, ahead)
        y = self.norm(self._decoded(past, features))
        linear = torch.einsum("BHF,HF->BH", features, self.features_to_value)[..., None]
        return torch.cat([y, linear, level.expand_as(linear), spread.expand_as(linear)], -1), None

    def _levelled(self, source: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Past and circumstances less their own level and over their own spread, and those of the value (B, 1, 1)."""
        measured = 1 + self.config.n_measured
        recent = source[:, -self.config.level * self.config.season :, :measured]
        level = recent.median(1, keepdim=True).values
        spread = (recent - level).abs().mean(1, keepdim=True) + LEAST_SPREAD
        past = torch.cat([(source[..., :measured] - level) / spread, source[..., measured:]], -1)
        shifted = (known[..., : measured - 1] - level[..., 1:]) / spread[..., 1:]
        return past, torch.cat([shifted, known[..., measured - 1 :]], -1), level[..., :1], spread[..., :1]

    def _features(self, past: Tensor, ahead: Tensor) -> Tensor:
        """f (B, H, F): what is known ahead, the values and the circumstances of the same time some seasons ago."""
        measured, horizon = 1 + self.config.n_measured, ahead.shape[1]
        starts = [past.shape[1] - lag * self.config.season for lag in self.config.lags]
        before = [past[:, start : start + horizon, :measured] for start in starts]
        values = torch.stack([one[..., 0] for one in before], -1)
        return torch.cat([ahead, values, *(one[..., 1:] for one in before)], -1)

    def _decoded(self, past: Tensor, features: Tensor) -> Tensor:
        features = self.dropout(features)
        if self.encoder is not None:
            memory, _ = self.encoder(past)
            return self.stack(self.features_to_vector(features) + self.step, None, Context(memory=memory))[0]
        assert self.past_to_vector is not None
        nothing = features.new_ones(*features.shape[:2], 1)
        ahead = self.features_to_vector(torch.cat([features, nothing], -1)) + self.step
        both = torch.cat([self.past_to_vector(past), ahead], 1)
        return self.stack(both)[0][:, -features.shape[1] :]


@register(
    "forecaster",
    sizes={
        "tiny": {"d_model": 16, "n_heads": 2},
        "small": {},
        "base": {"d_model": 128, "n_layers": 2, "n_heads": 8},
        "paper": {"encoder": "transformer", "d_model": 128, "n_layers": 3, "n_heads": 16, "dropout": 0.2},
    },
    paper="Nie, Nguyen, Sinthong, Kalagnanam 2023, A time series is worth 64 words",
    training={"lr": 2e-3, "batch_size": 64, "ema": 0.99, "weight_decay": 0.01, "warmup": 0.1},
    task="series",
)
def forecaster(
    spec: DataSpec,
    *,
    form: Literal["encoder_decoder", "decoder_only"] = "encoder_decoder",
    encoder: str = "transformer",
    decoder: Literal["transformer", "lstm"] = "transformer",
    d_model: int = 64,
    n_layers: int = 1,
    n_heads: int = 4,
    patch: int = 24,
    season: int = 24,
    lags: tuple[int, ...] = (1, 2, 3, 7),
    dropout: float = 0.2,
    input_dropout: float = 0.0,
) -> ForecasterConfig:
    """What is known ahead and what was the same hour of days before, corrected by a net that has read the past."""
    farthest = season * max(lags, default=0)
    check(
        farthest <= spec.history,
        f"model.lags: the farthest reaches {farthest} steps back and data.history is {spec.history}: raise that, or "
        f"choose lags of at most {spec.history // max(1, season)}",
    )
    given: dict[str, Any] = {"n_known": spec.n_known, "horizon": spec.horizon, "season": season, "lags": lags}
    given["dropout"] = input_dropout
    norm = NormConfig(d_model)
    mlp = MlpConfig(d_model, 2 * d_model)
    if form == "decoder_only":
        within = AttentionConfig(d_model, n_heads, position="alibi", dropout=dropout)
        block = BlockConfig(d_model, within, mlp, norm, dropout=dropout)
        return ForecasterConfig(None, StackConfig(d_model, (block,) * (n_layers + 1)), d_model, **given)
    reader = EncoderStack(encoder, d_model, n_layers, n_heads, dropout)
    layers = reader.layers()
    places = PositionConfig(d_model, "sinusoidal") if layers.position is not None else None
    numbers = NumbersConfig(1 + spec.n_known, d_model, patch, places, input_dropout)
    read = EncoderConfig(numbers, layers.stack, layers.norm)
    stack = _attentive(d_model, n_layers, n_heads, dropout) if decoder == "transformer" else _recurrent(d_model)
    return ForecasterConfig(read, stack, d_model, **given)


def _attentive(d_model: int, n_layers: int, n_heads: int, dropout: float) -> MixerConfig:
    """Times of the horizon look at each other and at the past."""
    norm = NormConfig(d_model)
    within = AttentionConfig(d_model, n_heads, causal=False, dropout=dropout)
    across = CrossAttentionConfig(d_model, n_heads, dropout=dropout)
    layer = (
        BlockConfig(d_model, within, None, norm, dropout=dropout),
        BlockConfig(d_model, across, MlpConfig(d_model, 2 * d_model), norm, dropout=dropout),
    )
    return StackConfig(d_model, layer * n_layers)


def _recurrent(d_model: int) -> MixerConfig:
    """The past as the first state of a recurrence over the horizon."""
    return GivenConfig(d_model, LstmConfig(d_model), pooling="last")
