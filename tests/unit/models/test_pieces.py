"""Long texts in pieces: against a loop over the pieces of each text."""

from __future__ import annotations

from typing import Any

import torch

from regard.core.context import Context
from regard.core.data_spec import DataSpec
from regard.core.registry import entry
from regard.models.classifier import classifier
from regard.models.pieces import one_piece, pieces


def labeller(**settings: Any) -> Any:
    torch.manual_seed(0)
    return entry("classifier").config(DataSpec(vocab_size=20, n_classes=3), "tiny", **settings).build().double().eval()


def test_the_vector_of_a_long_text_is_the_mean_of_its_pieces_by_their_words():
    model = labeller(piece=4)
    lengths = torch.tensor([11, 3, 4, 5])
    tokens = torch.randint(1, 20, (4, 11))
    found, _ = model(tokens, context=Context(lengths=lengths))
    for row, length in enumerate(lengths.tolist()):
        parts = tokens[row, :length].split(4)
        each = [model(part[None])[0][0] * len(part) / length for part in parts]
        assert torch.allclose(found[row], torch.stack(each).sum(0))


def test_a_step_of_training_reads_one_piece_from_anywhere_within_the_text():
    tokens, lengths = torch.arange(1, 41).expand(200, 40).clone(), torch.tensor([40, 20, 5, 0] * 50)
    torch.manual_seed(0)
    found, sizes = one_piece(tokens, lengths, 8)
    assert found.shape == (200, 8)
    assert sizes.tolist() == [8, 8, 5, 0] * 50
    first = found[::4, 0]
    assert bool((found[:, 1:] == found[:, :-1] + 1).all())
    assert 1 <= int(first.min()) < 8
    assert 26 < int(first.max()) <= 33
    assert int(found[1::4, -1].max()) <= 20


def test_an_empty_text_is_one_empty_piece():
    cut = pieces(torch.ones(2, 9, dtype=torch.long), torch.tensor([0, 9]), 4)
    assert cut.lengths.tolist() == [0, 4, 4, 1]
    assert cut.text.tolist() == [0, 1, 1, 1]
    assert torch.allclose(cut.share, torch.tensor([1, 4 / 9, 4 / 9, 1 / 9]))


def test_an_encoder_by_its_name_is_a_network_alone():
    spec = DataSpec(vocab_size=20, n_classes=3, spelled=True)
    default: Any = classifier(spec)
    named: Any = classifier(spec, encoder="lstm")
    both: Any = classifier(spec, encoder="lstm", linear=True)
    assert default.linear > 0
    assert named.linear == 0
    assert named.encoder == default.encoder
    assert both.linear > 0
