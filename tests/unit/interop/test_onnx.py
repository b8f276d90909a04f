"""ONNX graphs in onnxruntime: step by step and at once what the model says, for every family."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.core.bidirectional import BidirectionalConfig
from regard.core.config import Config
from regard.core.context import Context
from regard.core.data_spec import EXAMPLE
from regard.core.inputs import SourceTokens
from regard.core.model import logits_of
from regard.core.stack import BlockConfig, StackConfig
from regard.decoding.mixture import MixtureConfig
from regard.interop.onnx_graph import graphs_of
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.pooling import PoolingConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.cross import CrossAttentionConfig
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.mean import MeanConfig
from regard.mixers.rnn import RnnConfig
from regard.mixers.s4d import S4dConfig
from regard.mixers.ssd import SsdConfig
from regard.mixers.window import WindowConfig
from regard.models.encoder import EncoderConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.ensemble import EnsembleConfig
from regard.models.labeller import LabellerConfig
from regard.models.language import LanguageModelConfig

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package, reason="ONNX needs pip install 'regard[export]'")
from regard.interop.onnx_write import Session, largest_difference, write_graph  # noqa: E402

# While a graph is made sizes are symbols, which the checks of types in tests do not take for numbers.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")
VOCABULARY, WIDTH = 13, 8
SPEC = replace(EXAMPLE, vocab_size=VOCABULARY, n_classes=3)
NEAR = 1e-4


def written(model: Any, spec: Any, folder: Path, room: int = 12) -> dict[str, Session]:
    graphs = graphs_of(model, spec, room)
    for graph in graphs.graphs:
        write_graph(graph, folder / f"{graph.name}.onnx")
    assert largest_difference(graphs, folder) < NEAR
    return {graph.name: Session(folder / f"{graph.name}.onnx") for graph in graphs.graphs}


def built(config: Config) -> Any:
    torch.manual_seed(1)
    return config.build().eval()


def follows(sessions: dict[str, Session], state: dict[str, np.ndarray], tokens: torch.Tensor, wanted: torch.Tensor):
    """Token by token from a state, the logits are those of the whole text read at once."""
    for place in range(tokens.shape[1]):
        told = sessions["step"](tokens=tokens[:, place].numpy(), **state)
        np.testing.assert_allclose(told["logits"], wanted[:, place].numpy(), atol=NEAR)
        state = {name.replace("next", "state", 1): value for name, value in told.items() if name != "logits"}


def test_a_step_of_every_mixer_is_the_step_of_the_model(tmp_path: Path) -> None:
    norm = NormConfig(WIDTH, "rms")
    mixers = (
        RnnConfig(WIDTH),
        LstmConfig(WIDTH),
        GruConfig(WIDTH, convention="cho"),
        S4dConfig(WIDTH, 4),
        MambaConfig(WIDTH, 3),
        SsdConfig(WIDTH, 3, 4, chunk=4),
        MeanConfig(WIDTH),
        WindowConfig(WIDTH, 3),
        AttentionConfig(WIDTH, 2, 1, position="rotary", qk_norm=True, window=5),
    )
    layers = tuple(BlockConfig(WIDTH, mixer) for mixer in mixers)
    config = LanguageModelConfig(EmbeddingConfig(VOCABULARY, WIDTH), StackConfig(WIDTH, layers), norm)
    model = built(config)
    sessions = written(model, SPEC, tmp_path)
    tokens = torch.randint(VOCABULARY, (5, 9))  # more rows than the graph was made with
    with torch.no_grad():
        wanted = logits_of(model, tokens)
    state = sessions["start"](tokens=tokens[:, 0].numpy())
    assert {value.dtype.kind for value in state.values()} <= {"f", "i"}  # no complex number
    follows(sessions, state, tokens, wanted)


def test_what_reads_a_source_goes_on_from_its_start_graph(tmp_path: Path) -> None:
    norm, mlp = NormConfig(WIDTH), MlpConfig(WIDTH, 12, "relu")
    embedding = EmbeddingConfig(VOCABULARY, WIDTH, scaled=True)
    read = StackConfig(WIDTH, (BlockConfig(WIDTH, AttentionConfig(WIDTH, 2, causal=False), mlp, norm),))
    both = (AttentionConfig(WIDTH, 2), CrossAttentionConfig(WIDTH, 2))
    layers = tuple(BlockConfig(WIDTH, mixer, norm=norm) for mixer in both)
    decoder = LanguageModelConfig(embedding, StackConfig(WIDTH, layers), norm)
    model = built(EncoderDecoderConfig(EncoderConfig(embedding, read, norm), decoder))
    sessions = written(model, SPEC, tmp_path)
    source, lengths = torch.randint(VOCABULARY, (4, 7)), torch.tensor([7, 1, 3, 5])
    tokens = torch.randint(VOCABULARY, (4, 6))
    with torch.no_grad():
        wanted = logits_of(model, SourceTokens(source, tokens, lengths))
    state = sessions["start"](source=source.numpy(), lengths=lengths.numpy())
    follows(sessions, state, tokens, wanted)


def test_texts_of_any_length_are_labelled_at_once_by_what_reads_both_ways(tmp_path: Path) -> None:
    stack = StackConfig(WIDTH, (BlockConfig(WIDTH, BidirectionalConfig(WIDTH, LstmConfig(WIDTH))),))
    encoder = EncoderConfig(EmbeddingConfig(VOCABULARY, WIDTH), stack)
    model = built(LabellerConfig(encoder, WIDTH, 3, PoolingConfig(WIDTH, "attention"), piece=6))
    session = written(model, SPEC, tmp_path)["forward"]
    for length in (4, 15):  # less than a piece, and more than two of them
        tokens, lengths = torch.randint(VOCABULARY, (4, length)), torch.tensor([length, 1, 4, min(7, length)])
        with torch.no_grad():
            wanted = logits_of(model, tokens, context=Context(lengths=lengths))
        told = session(tokens=tokens.numpy(), lengths=lengths.numpy())["answers"]
        np.testing.assert_allclose(told, wanted.numpy(), atol=NEAR)


def test_pieces_may_be_longer_than_the_text_that_a_graph_is_made_with(tmp_path: Path) -> None:
    stack = StackConfig(WIDTH, (BlockConfig(WIDTH, MeanConfig(WIDTH)),))
    encoder = EncoderConfig(EmbeddingConfig(VOCABULARY, WIDTH), stack)
    part = LabellerConfig(encoder, WIDTH, 3, PoolingConfig(WIDTH, "mean"), piece=128)
    model = built(EnsembleConfig(part, 2))
    session = written(model, SPEC, tmp_path)["forward"]
    for length in (1, 128, 300):
        tokens, lengths = torch.randint(VOCABULARY, (2, length)), torch.tensor([length, 1])
        with torch.no_grad():
            wanted = logits_of(model, tokens, context=Context(lengths=lengths))
        told = session(tokens=tokens.numpy(), lengths=lengths.numpy())["answers"]
        np.testing.assert_allclose(told, wanted.numpy(), atol=NEAR)
    # A size that is said to be 1 where it is any is a matter of luck: memory may be used for what is larger than it.
    assert not said_too_small(tmp_path / "forward.onnx")


def said_too_small(path: Path) -> list[str]:
    """Quotients of which the file says a size of 1 where what is divided has another."""
    graph = importlib.import_module("onnx").load(path).graph
    sizes = {
        one.name: [size.dim_param or size.dim_value for size in one.type.tensor_type.shape.dim]
        for one in graph.value_info
    }
    found = [
        (node.name, sizes.get(node.input[0], []), sizes[node.output[0]]) for node in graph.node if node.op_type == "Div"
    ]
    return [name for name, before, after in found if any(a != 1 == b for a, b in zip(before, after, strict=False))]


def test_several_models_are_exported_as_their_mean(tmp_path: Path) -> None:
    part = LanguageModelConfig(
        EmbeddingConfig(VOCABULARY, WIDTH), StackConfig(WIDTH, (BlockConfig(WIDTH, GruConfig(WIDTH)),))
    )
    model = built(MixtureConfig((part, part), (0.5, 0.5)))
    sessions = written(model, SPEC, tmp_path)
    tokens = torch.randint(VOCABULARY, (5, 9))
    with torch.no_grad():
        wanted = logits_of(model, tokens)
    follows(sessions, sessions["start"](tokens=tokens[:, 0].numpy()), tokens, wanted)
