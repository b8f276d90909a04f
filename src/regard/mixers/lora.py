"""A mixer that was found trained, with a change of low rank beside each of its linear maps (layers/low_rank.py).

What it computes, its state, its taps and the names of its weights are those of the mixer; the numbers of the changes
come on top. `with_lora` puts it around the stacks of a model, `without_lora` takes it away: the model into which the
changes are merged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from regard.core.config import Config, check
from regard.core.mixer import Mixer
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.layers.low_rank import with_low_rank
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.mamba import MambaConfig

C = TypeVar("C", bound=Config)


@dataclass(frozen=True)
class LoraConfig(MixerConfig, kind="lora"):
    """mixer: what was found. rank: of the changes."""

    mixer: MixerConfig
    rank: int

    def __post_init__(self) -> None:
        same = self.mixer.d_model == self.d_model
        check(same, f"the mixer has width {self.mixer.d_model}, what changes it {self.d_model}")
        fits = 0 < self.rank < self.d_model
        check(fits, f"expected a rank from 1 to {self.d_model - 1}, below the width of the model, found {self.rank}")

    @property
    def d_read(self) -> int:
        return self.mixer.d_read

    @property
    def d_given(self) -> int:
        return self.mixer.d_given

    def build(self) -> Mixer:
        mixer = self.mixer.build()
        with_low_rank(mixer, self.rank)
        return mixer

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        block = BlockConfig(8, AttentionConfig(8, 2), MlpConfig(8, 12), NormConfig(8))
        return {
            "lora": cls(8, StackConfig(8, (block,)), 2),
            "lora-mamba": cls(8, MambaConfig(8, d_state=4), 2),
        }


def with_lora(config: C, rank: int) -> C:
    """The config with changes of this rank in every stack of it, the outermost ones."""

    def around(part: Config) -> Config | None:
        return LoraConfig(part.d_model, part, rank) if isinstance(part, StackConfig) else None

    return _each(config, around)


def without_lora(config: C) -> C:
    """The config of the model into which the changes are merged."""
    return _each(config, lambda part: part.mixer if isinstance(part, LoraConfig) else None)


def _each(config: C, instead: Callable[[Config], Config | None]) -> C:
    """A tree with what `instead` gives for a part in its place, where it gives anything; there it ends."""
    found = instead(config)
    if found is not None:
        return found  # pyright: ignore[reportReturnType]  # in the place of a part of its kind
    parts = {field.name: _changed(getattr(config, field.name), instead) for field in dataclasses.fields(config)}
    same = all(parts[name] is getattr(config, name) for name in parts)
    return config if same else dataclasses.replace(config, **parts)


def _changed(value: Any, instead: Callable[[Config], Config | None]) -> Any:
    if isinstance(value, Config):
        return _each(value, instead)
    if isinstance(value, tuple) and any(isinstance(part, Config) for part in value):
        found = tuple(_changed(part, instead) for part in value)
        return value if all(map(lambda a, b: a is b, found, value)) else found
    return value
