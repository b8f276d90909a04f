"""Tables of weights are read both ways: what is made of ours is ours again, and theirs too where nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from foreign_models import BOTH_WAYS, CAUSAL, theirs_of
from regard.interop.architectures import plan_of
from regard.interop.weight_table import HeadByHead, Heads, OneMore, Places, Turned, lines_of
from regard.storage import tensors


@pytest.mark.parametrize("name", [*CAUSAL, *BOTH_WAYS])
def test_every_table_gives_back_all_their_tensors(name: str, tmp_path: Path) -> None:
    theirs_of(name).save_pretrained(tmp_path)
    given = load_file(tmp_path / "model.safetensors")
    plan = plan_of(json.loads((tmp_path / "config.json").read_text(encoding="utf-8")), "config.json", given)
    found: dict[str, torch.Tensor] = {}
    own = tensors.weights_of(plan.config.build())
    for line in lines_of(plan.table, plan.n_layers):
        made = line.form.ours([given[part] for part in line.theirs])
        assert made.shape == own.pop(line.ours).shape
        back = line.form.theirs(made)
        assert torch.equal(line.form.ours(back), made)
        assert not found.keys() & set(line.theirs)
        found |= dict(zip(line.theirs, back, strict=True))
    assert not own, "tensors of ours that no line makes"
    # The rows of positions before the first, and segments beside the positions, come back as zeros.
    for part in (part for part in found if "embeddings" not in part):
        # A norm that is kept as its distance from one is rounded on the way.
        torch.testing.assert_close(found[part], given[part], rtol=0, atol=3e-7 if name == "gemma-3" else 0)
    left = given.keys() - found.keys() - plan.copies.keys()
    assert not left, "tensors of theirs that no line takes"


def test_half_split_pairs_become_neighbours() -> None:
    rows = torch.arange(12.0)[:, None]
    assert Turned(6, 4).ours([rows])[:, 0].tolist() == [0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11]


def test_forms_are_their_own_inverses() -> None:
    for form, shape in ((Heads(2, 1, 4, 4), (16, 3)), (HeadByHead(Heads(2, 2, 4, 2)), (24, 3)), (Places(2, 1), (5, 3))):
        tensor = torch.randn(shape)
        assert torch.equal(form.ours(form.theirs(tensor)), tensor)
    weight = torch.randn(4)
    torch.testing.assert_close(OneMore(2.0).ours(OneMore(2.0).theirs(weight)), weight)
