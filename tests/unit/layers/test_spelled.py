"""Words as the sum of their row, their letters and their forms; rare ones are hidden while training."""

from __future__ import annotations

import math

import torch

from regard.layers.spelled import KINDS, SPELLING_LENGTH, Spelled, SpelledConfig, spelling

START = torch.zeros(1, dtype=torch.long)


def words(*rows: tuple[int, list[int]]) -> torch.Tensor:
    """(1, T, 1 + L + K): tokens with their first forms, all spelt alike."""
    spelt = torch.from_numpy(spelling("a"))
    return torch.stack(
        [
            torch.cat([torch.tensor([token]), spelt, torch.tensor(forms + [0] * (KINDS - len(forms)))])
            for token, forms in rows
        ]
    )[None].long()


def made(**settings) -> Spelled:
    torch.manual_seed(1)
    return SpelledConfig(10, 6, n_forms=20, **settings).build().double()


def test_forms_are_added_and_no_form_adds_nothing():
    layer = made().eval()
    assert layer.form_to_vector is not None
    with torch.no_grad():
        layer.form_to_vector.weight[0] = 1e9  # what no form has is never read
        plain, formed = layer(words((3, []), (3, [1, 15, 19])), START)[0]
        expected = layer.form_to_vector.weight[[1, 15, 19]].sum(0)
    assert torch.allclose(formed - plain, expected)


def test_while_training_a_rare_word_is_unknown_now_and_then_and_so_are_its_forms():
    layer, many = made(rare=0.5), 4_000
    assert layer.form_to_vector is not None
    with torch.no_grad():
        for table, first in ((layer.token_to_vector, 1.0), (layer.form_to_vector, 100.0)):
            table.weight.zero_()
            table.weight[0 if first == 1.0 else 2] = first  # <unk>, and the unknown form of the second kind
        layer.byte_to_vector.weight.zero_()
        layer.bytes_to_features.bias.zero_()
        given = words((8, [0, 16])).expand(1, many, -1)
        told = layer(given, START)[0, :, 0]
        unknown_word, unknown_form = (told % 100 == 1).double().mean(), (told >= 100).double().mean()
        assert abs(unknown_word - 0.5 * math.sqrt(8 / 10)) < 0.03
        assert abs(unknown_form - 0.5 * math.sqrt(16 / 20)) < 0.03
        assert (layer(words((0, [1])).expand(1, many, -1), START)[0, :, 0] == 1).all()
        assert (layer.eval()(given, START) == 0).all()


def test_without_forms_it_has_the_weights_of_runs_from_before():
    names = set(SpelledConfig(10, 6).build().state_dict())
    assert names == {
        "token_to_vector.weight",
        "byte_to_vector.weight",
        "bytes_to_features.weight",
        "bytes_to_features.bias",
    }
    wide, narrow = words((3, [1, 15])), words((3, []))[..., : 1 + SPELLING_LENGTH]
    layer = SpelledConfig(10, 6).build()
    assert torch.equal(layer(wide, START), layer(narrow, START))
