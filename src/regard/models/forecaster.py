"""The forecaster: a past that is read, a horizon whose circumstances are known ahead, quantiles for each of its times.

    m = encoder(past)                                      values, circumstances, calendar, by the hour or the day
    f_h = [known_h ; the same hour of days before]         what is known of time h without any model
    y_h = decoder(W f_h ; m)                               all times at once: nothing is fed back
    q_h = a_h . f_h + V norm(y_h)                          a linear forecast and what the net adds, for each quantile
    r_h = A_h . g + e_h                                    LEAR: a linear forecast from whole days, solved for
    answer = (q_h + r_h) / 2

Every past is brought to a common level and spread first, and the forecast back, so that a market whose prices have
doubled looks like itself (Kim et al. 2022). What one of the two makes of noise the other does not: their mean misses
less than the better one. Of a past that is long enough there are two levels, of a week and of a month, by which
forecasts err apart: q and r are the means of what both give. While it learns, the net sees each past by one of them,
which is drawn. What is solved for stays as it is. form = "decoder_only" reads past and horizon as one causal sequence.

Glossary
m     memory        f_h  features of time h of the horizon        q_h  quantiles of its value        a_h  linear weights
lags  seasons back from which f_h takes the values of the same time, and g those of all times
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
from regard.core.fitted import FitSettings, Tell
from regard.core.inputs import PastKnown
from regard.core.registry import register
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.state import State
from regard.core.tap import Traced
from regard.fitting.level import Level, drawn, stretched
from regard.fitting.windows import CALENDAR, Channels, Windows
from regard.layers.embedding import NumbersConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.layers.quantile_head import PairedQuantileHead, QuantileHead
from regard.mixers.attention import AttentionConfig
from regard.models.encoder import EncoderConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.forecaster_spans import FAR, patch_size, second_level
from regard.models.horizon_stack import attentive, recurrent
from regard.models.lear import LearConfig
from regard.models.linear_forecaster import MOST_COLUMNS
from regard.models.point_forecaster import QUANTILES
from regard.models.whole_days import WholeDays, is_enough, seasons

LAGS = (1, 2, 3, 7)  # seasons back: of days the last three, and the same weekday


@dataclass(frozen=True)
class ForecasterConfig(Config, kind="forecaster"):
    """encoder: of the past; None for one causal stack over past and horizon. stack: over the horizon, or over both.

    n_known    numbers known ahead for each time, the calendar's 8 last and the n_static that never change before them.
    n_past     numbers measured of past times beside the value, which come last of what is read.
    season     steps after which things repeat, such as 24 hours.
    lags       seasons back whose values are features.
    dropout    of the features and of the numbers that are read.
    level      seasons over which the level and the spread of a past are taken.
    asinh      whether what is left of a level is stretched.
    linear     seasons over which the second forecast takes its level; 0: there is none. The preset has none where it
               would see more columns than can be solved for.
    far        seasons of a second level, by which each forecast is made once more; 0: there is none.
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
    n_past: int = 0
    n_static: int = 0
    asinh: bool = False
    linear: int = 0
    far: int = 0

    def __post_init__(self) -> None:
        least = CALENDAR + self.n_static
        check(self.n_known >= least, f"n_known counts the {least} numbers of calendar and series, found {self.n_known}")
        check(bool(self.lags) and min(self.lags) > 0, f"lags are seasons back, 1 or more of them, found {self.lags}")
        check(self.season > 0, f"season must be 1 step or more, found {self.season}")
        check(self.level > 0 <= self.linear, f"level and linear count seasons, found {self.level} and {self.linear}")
        check(self.far >= 0, f"far counts seasons, 0 for no second level, found {self.far}")
        check(all(0 < q < 1 for q in self.quantiles), f"quantiles lie between 0 and 1, found {self.quantiles}")

    @property
    def n_measured(self) -> int:
        """Numbers known ahead that change from time to time, beside the calendar."""
        return self.n_known - CALENDAR - self.n_static

    @property
    def channels(self) -> Channels:
        return Channels(self.n_measured, self.n_static, self.n_past)

    @property
    def n_features(self) -> int:
        return self.n_known + len(self.lags) * (1 + self.n_measured + self.n_past)

    @property
    def levels(self) -> tuple[int, ...]:
        """Seasons of each level of the net."""
        return (self.level, self.far) if self.far else (self.level,)

    @property
    def lears(self) -> tuple[LearConfig, ...]:
        """The second forecast, by each of its levels."""
        spans = (self.linear, self.far) if self.far else (self.linear,)
        return tuple(self._lear(span) for span in spans) if self.linear else ()

    def _lear(self, level: int) -> LearConfig:
        ends = tuple(dict.fromkeys((min(self.lags), max(self.lags))))
        history = self.season * max(*self.lags, level)
        return LearConfig(
            *(self.n_known, history, self.horizon, self.asinh, self.quantiles),
            n_past=self.n_past, n_static=self.n_static,
            penalty="ridge", lags=self.lags, known_lags=ends, season=self.season, level=level,
        )  # fmt: skip

    def build(self) -> Forecaster:
        return Forecaster(self)


class Forecaster(Traced):
    """Past (B, S, 1 + K + P) and known ahead (B, H, K) to what its head makes quantiles (B, H, Q) of."""

    reads = "numbers"

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.config = config
        width, features = config.d_model, config.n_features
        self.encoder = config.encoder.build() if config.encoder else None
        self.stack = config.stack.build()
        inputs = features if config.encoder else features + 1
        self.features_to_vector = nn.Linear(inputs, width)
        self.past_to_vector = None if config.encoder else nn.Linear(1 + config.n_known + config.n_past, width)
        self.step = nn.Parameter(torch.empty(config.horizon, width))
        nn.init.normal_(self.step, std=0.02)
        self.norm = nn.LayerNorm(width)
        self.head = (
            PairedQuantileHead(width, config.quantiles, config.horizon, config.asinh, len(config.lears))
            if config.linear
            else QuantileHead(width, config.quantiles, config.asinh)
        )
        self.features_to_value = nn.Parameter(torch.zeros(config.horizon, features))
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        days = [WholeDays(one) for one in config.lears]
        self.days = days[0] if days else None
        self.far_days = days[1] if len(days) > 1 else None
        with torch.no_grad():
            # It begins as the mean of the two naive forecasts: yesterday, and the same day a week ago.
            near = [place for place, lag in enumerate(config.lags) if lag in (1, 7)]
            for place in near:
                self.features_to_value[:, config.n_known + place] = 1 / len(near)

    def begin(self, data: Windows, settings: FitSettings, tell: Tell) -> None:
        """Solve for the second forecast, in seconds; the net has it beside it from the first step on."""
        if self._solved and is_enough(data, tell):
            misses = [days.solve(data, settings, tell) for days in self._solved]
            self.head.get_buffer("misses").copy_(torch.cat(misses, -1))

    @property
    def _solved(self) -> list[WholeDays]:
        return [days for days in (self.days, self.far_days) if days is not None]

    @property
    def max_length(self) -> int | None:
        return None

    def forward(
        self, inputs: PastKnown, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B H _"], State | None]:
        """norm(y_h), a_h . f_h, level, spread side by side, (B, H, D + 3), of each level; A_h . g and both of each."""
        config = self.config
        levels = [Level.of(inputs.past, config.channels, span * config.season) for span in config.levels]
        # One step for both would take twice as long, and by one that is drawn the net learns not to hang on either.
        seen = [drawn(levels)] if self.training else levels
        parts = [part for level in seen for part in self._net(inputs, level)]
        parts += [part for days in self._solved for part in days(inputs)]
        return torch.cat(parts, -1), None

    def _net(self, inputs: PastKnown, level: Level) -> list[Tensor]:
        window = level.apply(inputs)
        window = stretched(window, self.config.channels) if self.config.asinh else window
        features = self._features(window.past, window.known)
        y = self.norm(self._decoded(window.past, features))
        linear = torch.einsum("BHF,HF->BH", features, self.features_to_value)[..., None]
        return [y, linear, level.middle[..., :1].expand_as(linear), level.spread[..., :1].expand_as(linear)]

    def _features(self, past: Tensor, ahead: Tensor) -> Tensor:
        """f (B, H, F): what is known ahead, the values and the circumstances of the same time some seasons ago.

        Of a horizon that is longer than those seasons they are repeated.
        """
        changing = self.config.channels.changing(past)
        steps = torch.arange(ahead.shape[1], device=past.device)
        spans = [lag * self.config.season for lag in self.config.lags]
        before = [changing[:, past.shape[1] - span + steps % span] for span in spans]
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
    patch: int = 0,
    season: int = 0,
    lags: tuple[int, ...] = (),
    dropout: float = 0.2,
    input_dropout: float = 0.0,
    level: int = 7,
    linear: int = 7,
    far: int = FAR,
    asinh: bool = True,
) -> ForecasterConfig:
    """What is known ahead and what was the same hour of days before, corrected by a net that has read the past.

    patch, season, lags: 0 or none for those that suit the step of the series.
    """
    season = season or min(spec.season or 24, spec.history)
    lags = lags or tuple(lag for lag in LAGS if lag * season <= spec.history) or (1,)
    farthest = season * max(lags)
    check(
        farthest <= spec.history,
        f"model.lags: the farthest reaches {farthest} steps back and data.history is {spec.history}: raise that, or "
        f"choose lags of at most {spec.history // max(1, season)}",
    )
    given: dict[str, Any] = {"n_known": spec.n_known, "horizon": spec.horizon, "season": season, "lags": lags}
    given |= {"dropout": input_dropout, "n_past": spec.n_past, "n_static": spec.n_static}
    far = second_level(far, max(level, linear), season, spec.history)
    given |= {"level": level, "linear": linear, "far": far, "asinh": asinh}
    norm = NormConfig(d_model)
    mlp = MlpConfig(d_model, 2 * d_model)
    if form == "decoder_only":
        within = AttentionConfig(d_model, n_heads, position="alibi", dropout=dropout)
        block = BlockConfig(d_model, within, mlp, norm, dropout=dropout)
        return _solvable(ForecasterConfig(None, StackConfig(d_model, (block,) * (n_layers + 1)), d_model, **given))
    reader = EncoderStack(encoder, d_model, n_layers, n_heads, dropout)
    layers = reader.layers()
    places = PositionConfig(d_model, "sinusoidal") if layers.position is not None else None
    numbers = NumbersConfig(spec.n_channels, d_model, patch or patch_size(season, spec.history), places, input_dropout)
    read = EncoderConfig(numbers, layers.stack, layers.norm)
    stack = attentive(d_model, n_layers, n_heads, dropout) if decoder == "transformer" else recurrent(d_model)
    return _solvable(ForecasterConfig(read, stack, d_model, **given))


def _solvable(config: ForecasterConfig) -> ForecasterConfig:
    """Without a second forecast where it would see more columns than can be solved for."""
    too_many = bool(config.lears) and seasons(config.lears[0]).n_columns > MOST_COLUMNS
    return config.replace(linear=0) if too_many else config
