"""Models of other programs keep the laws that ours do, with the settings that they come with.

Every kind of layer that one of them has, once, by those laws that are soon asked; all of them are asked of the examples
of each mixer.
"""

from __future__ import annotations

from pathlib import Path

from foreign_models import BOTH_WAYS, CAUSAL, TRANSLATORS, ours_of, theirs_of
from regard.core.config import Config
from regard.core.stack import MixerConfig, StackConfig
from regard.laws import check_mixer
from regard.models.encoder_decoder import EncoderDecoderConfig

ASKED = ("step", "causality", "padding", "packing", "select", "position", "purity", "source", "round trip")


def layers_of(config: Config) -> list[MixerConfig]:
    """The layers of a model, of both of its sides where it has two."""
    sides = [config.encoder, config.decoder] if isinstance(config, EncoderDecoderConfig) else [config]
    stacks = [side.stack for side in sides]  # pyright: ignore[reportAttributeAccessIssue]
    return [layer for stack in stacks if isinstance(stack, StackConfig) for layer in stack.layers]


def test_every_kind_of_layer_that_comes_in_keeps_the_laws(tmp_path: Path) -> None:
    kinds: dict[MixerConfig, str] = {}
    for name in CAUSAL | BOTH_WAYS | TRANSLATORS:
        for layer in layers_of(ours_of(theirs_of(name), tmp_path / name).config):
            kinds.setdefault(layer, name)
    assert len(kinds) > 20
    for layer, name in kinds.items():
        results = check_mixer(layer, name, only=ASKED)
        broken = [f"{r.subject}, law {r.law!r}: {r.detail}" for r in results if r.held is False]
        assert not broken, "\n" + "\n".join(broken)
        assert sum(r.held is True for r in results) >= 4, name
