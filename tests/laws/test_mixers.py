"""Every mixer example and every registered model keeps every law."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

from regard.core import registry
from regard.core.bidirectional import BidirectionalConfig
from regard.core.context import Context
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.tap import record
from regard.laws import LawResult, check_mixer, check_model
from regard.laws.check import LAWS
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.score import ScoreName
from regard.mixers.attention import AttentionConfig
from regard.mixers.gru import GruConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.s4d import S4dConfig
from regard.mixers.senses import SensesConfig
from regard.mixers.window import WindowConfig

EXAMPLES = registry.mixer_examples()
# What the examples vary one at a time meets here, and so do mixers of different kinds in one stack.
COMBINATIONS: dict[str, MixerConfig] = {
    "alibi in base 3": AttentionConfig(8, 2, position="alibi", base=3.0),
    "cosine, grouped, windowed, in base 3": AttentionConfig(8, 4, n_kv_heads=2, score="cosine", window=3, base=3.0),
    "full, windowed": AttentionConfig(8, 2, causal=False, window=2),
    "full, windowed, additive": AttentionConfig(8, 2, causal=False, window=2, score="additive"),
    "full, alibi, bilinear": AttentionConfig(8, 2, causal=False, position="alibi", score="bilinear"),
    "state space, window and convolution": StackConfig(
        8,
        (
            BlockConfig(8, MambaConfig(8, 3), norm=NormConfig(8, "rms")),
            BlockConfig(8, AttentionConfig(8, 2, window=3), MlpConfig(8, 12, gated=True), NormConfig(8)),
            BlockConfig(8, S4dConfig(8, 4), residual=False),
        ),
    ),
    "both parts of a layer read the same": BlockConfig(
        8, AttentionConfig(8, 2, position="rotary"), MlpConfig(8, 12), NormConfig(8), placement="parallel"
    ),
    "norms before and after each part": BlockConfig(
        8, AttentionConfig(8, 2, window=3), MlpConfig(8, 12, gated=True), NormConfig(8, "rms"), placement="around"
    ),
    "two windows": StackConfig(8, (WindowConfig(8, 2), WindowConfig(8, 3))),
    "bidirectional, gru": BidirectionalConfig(8, GruConfig(8)),
    "bidirectional, then causal": StackConfig(8, (BidirectionalConfig(8, GruConfig(8)), GruConfig(8))),
    "senses chosen by a gru, without positions": SensesConfig(8, GruConfig(8), 2),
}


def held(results: list[LawResult], runs: int) -> None:
    """Nothing was broken, and every law was asked in each of the runs or is exempt by a declared fact."""
    broken = [f"{r.subject}, law {r.law!r}: {r.detail}" for r in results if r.held is False]
    assert not broken, "\n" + "\n".join(broken)
    assert [r.law for r in results] == list(LAWS) * runs
    unexplained = [r for r in results if r.held is None and not r.detail]
    assert not unexplained


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("unchecked_shapes")
def test_mixer_keeps_the_laws(name: str) -> None:
    held(check_mixer(EXAMPLES[name], name), runs=2)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", COMBINATIONS)
@pytest.mark.usefixtures("unchecked_shapes")
def test_combination_keeps_the_laws(name: str) -> None:
    held(check_mixer(COMBINATIONS[name], name), runs=2)


@pytest.mark.parametrize("name", registry.names())
def test_model_keeps_the_laws(name: str) -> None:
    held(check_model(name), runs=1)


def test_every_kind_of_mixer_has_an_example() -> None:
    kinds = {config.kind for config in EXAMPLES.values()}
    missing = set(registry.MIXERS) - kinds
    assert not missing, f"no example, so never checked: {sorted(missing)}"


@torch.no_grad()
@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_padding_beyond_the_window_poisons_nothing(score: ScoreName) -> None:
    # A padded query whose window holds no real key has nothing to look at; what it gives must still be a number,
    # because the layer above multiplies it by a weight of 0.
    layer = AttentionConfig(8, 2, causal=False, window=2, score=score)
    stack, x = StackConfig(8, (layer, layer)).build(), torch.randn(1, 6, 8)
    context = Context(lengths=torch.tensor([2]))
    plain = stack(x, None, context)[0][:, :2]
    assert torch.isfinite(plain).all()
    with record(stack):
        torch.testing.assert_close(stack(x, None, context)[0][:, :2], plain)


def test_shapes_in_signatures_are_checked_in_tests() -> None:
    embedding = registry.build("rnn", vocab_size=5, size="tiny").embedding
    with pytest.raises(TypeCheckError):
        embedding(torch.zeros(2, 3, dtype=torch.long), torch.zeros(3, dtype=torch.long))
