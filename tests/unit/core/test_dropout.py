"""Dropout that is locked over a row, and words that are gone from a batch."""

from __future__ import annotations

import pytest
import torch

import regard
from regard.core.context import Context
from regard.core.dropout import dropout, locks
from regard.errors import UsageError
from regard.layers.embedding import EmbeddingConfig

AWD = {
    "norm": "none",
    "residual": False,
    "tied": True,
    "locked": True,
    "d_hidden": 24,
    "n_layers": 3,
    "input_dropout": 0.6,
    "dropout": 0.2,
    "output_dropout": 0.4,
    "row_dropout": 0.1,
    "weight_dropout": 0.5,
}


def test_the_same_units_of_a_row_are_gone_at_each_position_and_the_mean_stays() -> None:
    torch.manual_seed(0)
    x = torch.ones(2000, 3, 10)
    y = dropout(0.25, locked=True)(x)
    assert torch.equal(y, y[:, :1].expand_as(y))
    torch.testing.assert_close(y.unique(), torch.tensor([0.0, 1 / 0.75]))
    assert float(y.mean()) == pytest.approx(1.0, abs=0.01)
    assert not torch.equal(y[0], y[1])
    free = dropout(0.25)(x)
    assert not torch.equal(free, free[:, :1].expand_as(free))


def test_a_word_is_gone_wherever_it_stands_and_the_shared_table_stays_whole() -> None:
    torch.manual_seed(0)
    embedding = EmbeddingConfig(50, 4, row_dropout=0.5).build()
    tokens = torch.arange(50).repeat(2, 2)  # (2, 100)
    table = embedding.token_to_vector.weight.clone()
    x = embedding(tokens, torch.zeros(2, dtype=torch.long))
    gone = (x == 0).all(-1)
    assert torch.equal(gone[0, :50], gone[1, 50:])
    assert 10 < int(gone[0, :50].sum()) < 40
    torch.testing.assert_close(x[~gone], 2 * table[tokens][~gone])
    assert torch.equal(embedding.token_to_vector.weight, table)


def test_an_awd_lstm_at_rest_is_the_same_model_without_any_dropout() -> None:
    torch.manual_seed(0)
    model = regard.build("lstm", vocab_size=30, d_model=16, **AWD)
    none = {key: 0.0 for key in AWD if key.endswith("dropout")}
    plain = regard.build("lstm", vocab_size=30, d_model=16, **AWD | none)
    plain.load_state_dict(model.state_dict())
    tokens = torch.randint(30, (2, 9))
    model.eval()
    plain.train()
    torch.testing.assert_close(model(tokens)[0], plain(tokens)[0])
    model.train()
    assert not torch.equal(model(tokens)[0], model(tokens)[0])


def test_rows_that_lie_end_to_end_are_taken_apart_where_a_row_has_one_mask() -> None:
    torch.manual_seed(0)
    model = regard.build("lstm", vocab_size=30, d_model=16, **AWD | {"weight_dropout": 0.0, "row_dropout": 0.0})
    assert locks(model)
    assert not model.packs
    tokens = torch.randint(30, (1, 9))
    torch.manual_seed(5)
    packed, _ = model(tokens, None, Context(offsets=torch.tensor([0, 5, 9])))
    rows = torch.cat([tokens[:, :5], torch.cat([tokens[:, 5:], tokens[:, :1]], 1)])
    torch.manual_seed(5)
    padded, _ = model(rows, None, Context(lengths=torch.tensor([5, 4])))
    torch.testing.assert_close(packed[0], torch.cat([padded[0, :5], padded[1, :4]]))


def test_widths_that_do_not_follow_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match=r"model\.d_hidden: norms are as wide as d_model"):
        regard.build("lstm", vocab_size=30, d_model=16, d_hidden=24, residual=False)
    wide = regard.build("lstm", vocab_size=30, d_model=16, d_hidden=24)  # added to a stream, each layer maps back
    assert wide(torch.zeros(1, 2, dtype=torch.long))[0].shape == (1, 2, 16)
