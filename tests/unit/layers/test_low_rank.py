"""Changes of low rank beside linear maps: what they compute, what they leave alone, and what merging them gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.core.config import from_dict
from regard.errors import UsageError
from regard.layers.linear import Linear
from regard.layers.low_rank import merged, with_low_rank
from regard.mixers.attention import AttentionConfig
from regard.mixers.lora import LoraConfig, with_lora, without_lora
from regard.models.gpt import gpt


@pytest.mark.parametrize("kind", [Linear, nn.Linear])
def test_a_map_is_its_matrix_and_sixteen_rth_of_the_product_of_the_two(kind: type[nn.Linear]) -> None:
    plain = kind(6, 5).double()
    weight, bias = plain.weight.detach().clone(), plain.bias.detach().clone()
    x = torch.randn(3, 6).double()
    before = plain(x)
    with_low_rank(plain, 2)
    assert torch.equal(plain(x), before)  # B is zero
    torch.nn.init.normal_(plain.lora_up)
    whole = weight + 16 / 2 * plain.lora_up @ plain.lora_down
    torch.testing.assert_close(plain(x), x @ whole.T + bias)
    torch.testing.assert_close(plain.weight, whole)
    assert torch.equal(plain.state_dict()["weight"], weight)
    torch.testing.assert_close(
        merged({f"a.{name}": one for name, one in plain.state_dict().items()})["a.weight"], whole
    )


def test_a_matrix_that_stays_asks_for_no_gradient_of_its_own() -> None:
    part = Linear(6, 5)
    with_low_rank(part, 2)
    part.requires_grad_(False)
    part.lora_up.requires_grad_(True)
    part(torch.randn(3, 6)).square().sum().backward()
    assert part.lora_up.grad is not None
    assert part.lora_down.grad is None
    assert part._parameters["weight"].grad is None  # pyright: ignore[reportOptionalMemberAccess]


def test_a_map_no_wider_than_the_rank_stays_as_it_is() -> None:
    both = nn.ModuleList([Linear(6, 5), Linear(2, 6)])
    with_low_rank(both, 2)
    assert [len(list(part.parameters())) for part in both] == [4, 2]


def test_a_model_with_changes_goes_through_json_and_back_to_the_plain_one() -> None:
    plain = gpt(11, d_model=8, n_heads=2, n_layers=2)
    changed = with_lora(plain, 3)
    assert from_dict(changed.to_dict()) == changed
    assert without_lora(changed) == plain
    own, theirs = (dict(config.build().named_parameters()) for config in (changed, plain))
    assert {name for name in own if "lora" not in name} == set(theirs)
    assert len(own) > len(theirs)


@pytest.mark.parametrize("rank", [0, -1, 8, 100])
def test_a_rank_of_nothing_or_of_the_whole_width_is_refused(rank: int) -> None:
    with pytest.raises(UsageError, match=f"a rank from 1 to 7, below the width of the model, found {rank}"):
        LoraConfig(8, AttentionConfig(8, 2), rank)
