"""The laws where the kernels are: all that is registered, and mixers wide enough for the kernels of decoding."""

from __future__ import annotations

import pytest
import torch

from regard.core import registry
from regard.core.stack import BlockConfig, MixerConfig
from regard.laws import LawResult, check_mixer, check_model
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.ssd import SsdConfig

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]
EXAMPLES = registry.mixer_examples()
# The kernels of a step ask for heads of at least 16 numbers and rows of some length.
WIDE: dict[str, MixerConfig] = {
    "attention": BlockConfig(128, AttentionConfig(128, 2), MlpConfig(128, 512), NormConfig(128)),
    "rotary, grouped": BlockConfig(
        64,
        AttentionConfig(64, 2, n_kv_heads=1, position="rotary"),
        MlpConfig(64, 128, gated=True),
        NormConfig(64, "rms"),
    ),
    "mamba": BlockConfig(64, MambaConfig(64, 16), norm=NormConfig(64, "rms")),
    "mamba2": BlockConfig(64, SsdConfig(64), norm=NormConfig(64, "rms")),
    "lstm": LstmConfig(64),
}


def held(results: list[LawResult]) -> None:
    broken = [f"{r.subject}, law {r.law!r}: {r.detail}" for r in results if r.held is False]
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_mixer_keeps_the_laws(name: str) -> None:
    held(check_mixer(EXAMPLES[name], name, "cuda"))


@pytest.mark.parametrize("name", WIDE)
def test_a_wide_mixer_keeps_the_laws(name: str) -> None:
    held(check_mixer(WIDE[name], name, "cuda"))


@pytest.mark.parametrize("name", registry.names())
def test_a_model_keeps_the_laws(name: str) -> None:
    held(check_model(name, "cuda"))
