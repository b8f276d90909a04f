"""The paper sizes have the number of parameters that was published for them."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Mamba2Config,
    Mamba2ForCausalLM,
    MambaConfig,
    MambaForCausalLM,
)

from regard.core import registry

COUNTED = [name for name in registry.MODELS if registry.entry(name).parameters is not None]
# Published as a rounded number; the others were counted to the last one.
ROUNDED = {"backpack": 0.001, "bert": 0.005}


def parameters_of_paper_size(name: str) -> int:
    """Parameters, those that are shared counted once; nothing is allocated."""
    published = registry.entry(name).parameters
    assert published is not None
    with torch.device("meta"):
        model = registry.build(name, vocab_size=published[1], size="paper")
    return sum(parameter.numel() for parameter in model.parameters())


def test_papers_with_a_published_count() -> None:
    assert set(COUNTED) == {"lstm", "gpt", "bert", "backpack", "mamba", "mamba2"}


@pytest.mark.parametrize("name", COUNTED)
def test_paper_size_has_the_published_number_of_parameters(name: str) -> None:
    published = registry.entry(name).parameters
    assert published is not None
    assert parameters_of_paper_size(name) == pytest.approx(published[0], rel=ROUNDED.get(name, 0), abs=0)


def test_counts_are_those_of_the_same_sizes_in_transformers() -> None:
    with torch.device("meta"):
        theirs = {
            "gpt": GPT2LMHeadModel(GPT2Config()),
            "mamba": MambaForCausalLM(MambaConfig(vocab_size=50280, num_hidden_layers=24)),
            "mamba2": Mamba2ForCausalLM(
                Mamba2Config(
                    vocab_size=50288,
                    hidden_size=768,
                    num_hidden_layers=24,
                    num_heads=24,
                    n_groups=1,
                    tie_word_embeddings=True,
                )
            ),
        }
    for name, model in theirs.items():
        assert parameters_of_paper_size(name) == sum(parameter.numel() for parameter in model.parameters()), name
    assert parameters_of_paper_size("gpt") == 124_439_808


@pytest.mark.parametrize("size", registry.SIZES)
@pytest.mark.parametrize("name", registry.MODELS)
def test_every_size_of_every_model_can_be_built(name: str, size: str) -> None:
    with torch.device("meta"):
        model = registry.build(name, vocab_size=100, size=size)
    tables = [part.num_embeddings for part in model.modules() if isinstance(part, torch.nn.Embedding)]
    assert 100 in tables or model.vocab_size == 100
    assert all(parameter.is_meta for parameter in model.parameters())
