"""Any encoder under any head, and any encoder with any decoder: what is read may be padded, saved and listened to."""

from __future__ import annotations

import typing
from typing import Any

import pytest
import torch

from regard.core import registry
from regard.core.context import Context
from regard.core.model import logits_of
from regard.laws.check import FACTS, LAWS
from regard.laws.result import Ledger
from regard.laws.subject import Subject, from_model, hostile
from regard.laws.view import sources
from regard.layers.pooling import PoolingName
from regard.models.encoder_stack import FAMILIES

pytestmark = pytest.mark.usefixtures("unchecked_shapes")  # which the laws of models check, in test_mixers.py
POOLINGS = typing.get_args(PoolingName)
# Beside the families: a mixer by its name, and language models by theirs, one of them no plain stack.
NAMED = ("attention", "window", "bert", "backpack")
WRITERS = ["seq2seq", "bahdanau", "gnmt", "transformer"]


def keeps(name: str, laws: tuple[str, ...], **settings: Any) -> Subject:
    """Each law raises where it does not hold."""
    entry = registry.entry(name)
    config = entry.config(FACTS, "tiny", dropout=0.0, **settings)
    with hostile():
        subject = from_model(name, config)
        for law in laws:
            LAWS[law](subject, Ledger())
    return subject


@pytest.mark.sweep(3)
@pytest.mark.parametrize("encoder", [*FAMILIES, *NAMED])
@pytest.mark.parametrize("name", ["classifier", "tagger"])
def test_a_batch_of_texts_equals_its_members_under_any_encoder(name: str, encoder: str) -> None:
    keeps(name, ("padding", "purity", "record", "round trip"), encoder=encoder)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("encoder", ["lstm", "transformer"])
def test_every_pooling_passes_over_padding(pooling: str, encoder: str) -> None:
    keeps("classifier", ("padding", "record", "learn"), pooling=pooling, encoder=encoder)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("encoder", [*FAMILIES, *NAMED])
@pytest.mark.parametrize("name", WRITERS)
def test_any_encoder_goes_with_any_decoder(name: str, encoder: str) -> None:
    keeps(name, ("source", "select", "round trip"), encoder=encoder)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("seq2seq", {"reverse": True}),
        ("seq2seq", {"give": "first", "bidirectional": True}),
        ("seq2seq", {"give": "every", "cell": "gru", "pooling": "attention"}),
        ("bahdanau", {"cell": "gru-cho", "readout": "maxout", "shows": "before", "d_hidden": 12}),
        ("bahdanau", {"cell": "lstm", "score": "bilinear", "n_layers": 2}),
        ("gnmt", {"n_layers": 1}),
        ("gnmt", {"n_layers": 5, "shared": False}),
        ("transformer", {"placement": "after", "norm": "rms", "tied": False}),
        ("transformer", {"position": "learned", "max_length": 80, "activation": "gelu"}),
        ("transformer", {"position": "none", "shared": False}),
    ],
)
def test_every_setting_of_an_encoder_decoder_keeps_the_laws_of_state(name: str, settings: dict[str, Any]) -> None:
    keeps(name, ("step", "chunk", "padding", "source", "packing", "select", "reserve", "round trip"), **settings)


@torch.no_grad()
def test_a_padded_source_is_read_from_its_last_real_token_when_reversed() -> None:
    plain: Any = registry.build("seq2seq", vocab_size=11, size="tiny", reverse=False).eval()
    turned: Any = registry.build("seq2seq", vocab_size=11, size="tiny", reverse=True).eval()
    turned.load_state_dict(plain.state_dict())
    source, lengths = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]]), torch.tensor([5, 3])
    by_hand = torch.tensor([[5, 4, 3, 2, 1], [8, 7, 6, 0, 0]])
    torch.testing.assert_close(turned.encode(source, lengths)[0], plain.encode(by_hand, lengths)[0])


@torch.no_grad()
@pytest.mark.parametrize("name", WRITERS)
def test_packed_targets_look_each_at_a_source_of_its_own(name: str) -> None:
    model = registry.build(name, vocab_size=11, size="tiny").double().eval()
    source, lengths = sources("pairs", 3)
    assert lengths is not None
    memory, _ = model.encode(source, lengths)
    offsets, tokens = torch.tensor([0, 3, 4, 8]), torch.randint(11, (1, 8))
    looked = Context(offsets=offsets, memory=memory, memory_lengths=lengths)
    packed = logits_of(model.decoder, tokens, None, looked)
    for row, (start, stop) in enumerate([(0, 3), (3, 4), (4, 8)]):
        one = Context(memory=memory[row : row + 1], memory_lengths=lengths[row : row + 1])
        torch.testing.assert_close(packed[:, start:stop], logits_of(model.decoder, tokens[:, start:stop], None, one))


def test_a_model_without_a_state_says_so_and_the_laws_of_state_are_not_asked_of_it() -> None:
    for name in ("classifier", "tagger"):
        entry = registry.entry(name)
        model = entry.config(FACTS, "tiny").build()
        assert (model.causal, model.has_state) == (False, False)
