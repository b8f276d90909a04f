"""The captioner: a picture is read, a text is written (1-N).

The encoder sees the picture as a grid of vectors. The decoder

    transformer  asks the text so far and the whole grid at every layer    Vaswani et al. 2017
    bahdanau     is a recurrence that looks at the grid before every word  Xu et al. 2015, Show, attend and tell
    lstm         begins with the mean of the grid and never looks again    Vinyals et al. 2015, Show and tell

Both papers read pictures with a network that had learnt to classify others; this one learns with the rest of the model.
"""

from __future__ import annotations

from typing import Literal

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.registry import register
from regard.core.stack import BlockConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.layers.picture import ConvolutionsConfig, PatchesConfig
from regard.mixers.attentive import AttentiveConfig
from regard.mixers.given import GivenConfig
from regard.mixers.lstm import LstmConfig
from regard.models.encoder import EncoderConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.language import LanguageModelConfig
from regard.models.transformer import attentive_decoder


@register(
    "captioner",
    sizes={
        "tiny": {"d_model": 16, "n_layers": 1, "n_heads": 2, "widths": (4, 8), "patch": 16},
        "small": {},
        "base": {"d_model": 256, "n_layers": 4, "widths": (64, 128, 256), "dropout": 0.2},
        "paper": {
            "d_model": 512,
            "d_hidden": 1800,
            "n_layers": 1,
            "widths": (64, 128, 256, 512),
            "decoder": "bahdanau",
        },
    },
    paper="Xu, Ba, Kiros et al. 2015, Show, attend and tell: neural image caption generation with visual attention",
    parameters=(None, DataSpec(vocab_size=10_000, picture=(3, 224, 224))),
    # Before shapes are told apart, a colour foretells them, and the model learns which pairs there are. Decay forgets
    # that again: with one seed it named 63% of the unseen pairs of world:shapes, and 27% with a decay of 0.01.
    training={"lr": 2e-3, "batch_size": 32, "weight_decay": 0.3},
    task="captions",
)
def captioner(
    spec: DataSpec,
    *,
    d_model: int = 96,
    n_layers: int = 2,
    n_heads: int = 4,
    d_hidden: int | None = None,
    dropout: float = 0.0,
    encoder: Literal["convolutions", "patches"] = "convolutions",
    widths: tuple[int, ...] = (32, 64),
    patch: int = 4,
    decoder: Literal["transformer", "bahdanau", "lstm"] = "transformer",
) -> EncoderDecoderConfig:
    """A picture as a grid of vectors, and a decoder that looks at them while it writes."""
    assert spec.picture is not None
    inner = d_hidden or 2 * d_model
    like = EncoderStack("transformer", d_model, n_layers, n_heads, dropout, d_hidden=inner)
    size = spec.picture[1]
    if encoder == "patches":
        layers = like.layers()
        read = EncoderConfig(PatchesConfig(d_model, size, patch, dropout), layers.stack, layers.norm)
    else:
        read = EncoderConfig(ConvolutionsConfig(d_model, size, widths, dropout), None, NormConfig(d_model))
    match decoder:
        case "transformer":
            write = attentive_decoder(like, spec.vocab_size)
        case "bahdanau":
            write = _looking(spec.vocab_size, d_model, n_layers, d_hidden, dropout)
        case "lstm":
            check(d_hidden is None, f"the lstm decoder is as wide as d_model; leave d_hidden={d_hidden} out")
            write = _told_once(spec.vocab_size, d_model, n_layers, dropout)
    return EncoderDecoderConfig(read, write)


def _looking(vocab_size: int, d_model: int, n_layers: int, d_hidden: int | None, dropout: float) -> LanguageModelConfig:
    """A recurrence with attention, and plain ones above it. Its first state is made of the mean of the grid."""
    lowest = AttentiveConfig(d_model, "lstm", d_hidden, pooling="mean")
    later = BlockConfig(d_model, LstmConfig(d_model), dropout=dropout)
    embedding = EmbeddingConfig(vocab_size, d_model, dropout=dropout)
    stack = StackConfig(d_model, (lowest, *[later] * (n_layers - 1)))
    return LanguageModelConfig(embedding, stack, NormConfig(d_model, dropout=dropout), head_bias=True)


def _told_once(vocab_size: int, d_model: int, n_layers: int, dropout: float) -> LanguageModelConfig:
    """Recurrences whose first states are made of one vector of the picture."""
    layer = BlockConfig(d_model, LstmConfig(d_model), residual=False, dropout=dropout)
    given = GivenConfig(d_model, StackConfig(d_model, (layer,) * n_layers), pooling="mean")
    return LanguageModelConfig(EmbeddingConfig(vocab_size, d_model, dropout=dropout), given, head_bias=True)
