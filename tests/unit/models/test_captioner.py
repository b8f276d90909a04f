"""The captioner: every encoder with every decoder, what each may know of the picture, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.core.config import from_dict
from regard.core.context import Context
from regard.core.data_spec import DataSpec
from regard.core.inputs import SourceTokens
from regard.core.model import logits_of
from regard.core.registry import entry
from regard.errors import UsageError

FACTS = DataSpec(vocab_size=11, picture=(3, 32, 32))
PARTS = list(product(["convolutions", "patches"], ["transformer", "bahdanau", "lstm"]))
every_pair = pytest.mark.parametrize(("encoder", "decoder"), PARTS)


def made(size: str = "tiny", **settings: Any) -> Any:
    torch.manual_seed(0)
    return entry("captioner").config(FACTS, size, **settings).build().double().eval()


def drawn(n: int) -> Tensor:
    return torch.randn(n, 3, 32, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


TOKENS = torch.tensor([[1, 4, 5, 6], [1, 7, 7, 2], [1, 3, 9, 10]])


@torch.no_grad()
@every_pair
def test_a_batch_equals_its_members_and_the_picture_counts(encoder: str, decoder: str):
    model, pictures = made(encoder=encoder, decoder=decoder, n_layers=2), drawn(3)
    memory, lengths = model.encode(pictures)
    assert lengths is None
    together, _ = model.decoder(TOKENS, None, Context(memory=memory))
    for row in range(3):
        alone, _ = model.given(pictures[row : row + 1])(TOKENS[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-10, atol=1e-12)
    other, _ = model.given(pictures.flip(0))(TOKENS)
    assert (other - together)[0].abs().amax() > 1e-6


@torch.no_grad()
@every_pair
def test_a_single_picture_is_looked_at_by_every_row(encoder: str, decoder: str):
    model, picture = made(encoder=encoder, decoder=decoder), drawn(1)
    together = logits_of(model, SourceTokens(picture, TOKENS))
    for row in range(3):
        alone = logits_of(model, SourceTokens(picture, TOKENS[row : row + 1]))
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-10, atol=1e-12)


@every_pair
def test_every_parameter_learns_and_the_config_comes_back(encoder: str, decoder: str):
    config = entry("captioner").config(FACTS, "tiny", encoder=encoder, decoder=decoder, n_layers=2)
    assert from_dict(config.to_dict()) == config
    model = config.build()
    logits_of(model.given(drawn(3).float()), TOKENS).square().sum().backward()
    still = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not still


@torch.no_grad()
def test_what_looks_again_has_weights_over_the_grid_and_what_is_told_once_has_none():
    for encoder, cells in (("convolutions", 64), ("patches", 4)):
        for decoder in ("transformer", "bahdanau"):
            model = made(encoder=encoder, decoder=decoder)
            weights = model.alignment(TOKENS, model.start(drawn(3)))
            assert weights.shape == (3, 4, cells)
            torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, dtype=torch.float64))
    model = made(decoder="lstm")
    assert model.alignment(TOKENS, model.start(drawn(3))) is None


def test_sizes_of_pictures_that_do_not_fit_are_refused():
    spec = DataSpec(vocab_size=11, picture=(3, 30, 30))
    with pytest.raises(UsageError, match="2 widths halve the pictures"):
        entry("captioner").config(spec, "tiny")
    with pytest.raises(UsageError, match="patch must divide the size of the pictures, 30"):
        entry("captioner").config(spec, "tiny", encoder="patches")
    with pytest.raises(UsageError, match="leave d_hidden=7 out"):
        entry("captioner").config(FACTS, "tiny", decoder="lstm", d_hidden=7)


def test_the_published_grid_is_fourteen_by_fourteen():
    config = entry("captioner").config(DataSpec(vocab_size=11, picture=(3, 224, 224)), "paper")
    tree = config.to_dict()
    assert tree["encoder"]["embedding"]["size"] // 2 ** len(tree["encoder"]["embedding"]["widths"]) == 14
    assert tree["encoder"]["embedding"]["d_model"] == 512
    assert tree["decoder"]["stack"]["layers"][0]["d_hidden"] == 1800
