"""Encoders and decoders against torch's TransformerEncoder and TransformerDecoder with the same numbers, in float64."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

from regard.core import registry
from regard.core.context import Context, real_tokens

Placement = Literal["before", "after"]
WIDTH, N_HEADS, N_LAYERS, INNER = 12, 3, 2, 20
LENGTHS, SOURCES = torch.tensor([6, 1, 4]), torch.tensor([5, 2, 3])
PART = {
    "self_attn": "mixer",
    "norm1": "mixer_norm",
    "linear1": "mlp.input_to_hidden",
    "linear2": "mlp.hidden_to_output",
}
INSIDE = {"in_proj_": "input_to_heads.", "out_proj.": "heads_to_output."}


def ours(placement: Placement) -> Any:
    """The transformer of the registry, with weights far from those it begins with."""
    sizes = {"d_model": WIDTH, "n_heads": N_HEADS, "n_layers": N_LAYERS, "d_hidden": INNER}
    model = registry.build("transformer", vocab_size=11, size="tiny", placement=placement, dropout=0.0, **sizes)
    return model.double().eval()


def theirs(kind: str, placement: Placement) -> Any:
    layer = nn.TransformerEncoderLayer if kind == "encoder" else nn.TransformerDecoderLayer
    whole: Any = nn.TransformerEncoder if kind == "encoder" else nn.TransformerDecoder
    one: Any = layer(WIDTH, N_HEADS, INNER, 0.0, batch_first=True, norm_first=placement == "before")
    last = nn.LayerNorm(WIDTH) if placement == "before" else None
    options = {"enable_nested_tensor": False} if kind == "encoder" else {}
    net = whole(one, N_LAYERS, last, **options).double().eval()
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.4)
    return net


def renamed(name: str) -> str:
    """Our name of a part of torch's layer of self-attention, norm and net."""
    part, _, rest = name.partition(".")
    for old, new in INSIDE.items():
        rest = rest.replace(old, new)
    return f"{PART[part]}.{rest}"


def of_encoder(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """torch's weights by our names. Its second norm is that of the net."""
    found = {}
    for name, value in state.items():
        if name.startswith("norm."):
            found[name] = value
            continue
        _, layer, rest = name.split(".", 2)
        stem = rest.replace("norm2", "mlp_norm") if rest.startswith("norm2") else renamed(rest)
        found[f"stack.layers.{layer}.{stem}"] = value
    return found


def of_decoder(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """One of torch's layers is two of ours: self-attention alone, then cross-attention with the net."""
    found = {}
    for name, value in state.items():
        if name.startswith("norm."):
            found[name] = value
            continue
        _, number, rest = name.split(".", 2)
        within, across = f"stack.layers.{2 * int(number)}", f"stack.layers.{2 * int(number) + 1}"
        if rest.startswith("multihead_attn.in_proj_"):
            kind = rest.rpartition("_")[2]
            q, k, v = value.chunk(3)
            found |= {f"{across}.mixer.input_to_queries.{kind}": q, f"{across}.mixer.memory_to_values.{kind}": v}
            if kind == "weight":  # the same bias for every key changes no weight
                found[f"{across}.mixer.memory_to_keys.weight"] = k
        elif rest.startswith("multihead_attn.out_proj."):
            found[f"{across}.mixer.heads_to_output.{rest.rpartition('.')[2]}"] = value
        elif rest.startswith(("norm2", "norm3")):
            found[f"{across}.{'mixer' if rest[4] == '2' else 'mlp'}_norm.{rest.rpartition('.')[2]}"] = value
        else:
            found[f"{across if rest.startswith('linear') else within}.{renamed(rest)}"] = value
    return found


def load(part: nn.Module, weights: dict[str, Tensor]) -> None:
    """Every weight of the part but those of its embedding and head."""
    missing, unexpected = part.load_state_dict(weights, strict=False)
    assert not unexpected
    assert {name.partition(".")[0] for name in missing} <= {"embedding", "head"}


@pytest.mark.parametrize("placement", ["before", "after"])
def test_encoder_equals_torch_on_rows_of_unequal_length(placement: Placement) -> None:
    model, net = ours(placement), theirs("encoder", placement)
    load(model.encoder, of_encoder(net.state_dict()))
    x = torch.randn(3, 5, WIDTH).double()
    real = real_tokens(SOURCES, x)
    expected = net(x, src_key_padding_mask=~real)
    found = model.encoder.norm(model.encoder.stack(x, None, Context(lengths=SOURCES))[0])
    torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-12)


@pytest.mark.parametrize("placement", ["before", "after"])
def test_decoder_equals_torch_whole_and_step_by_step(placement: Placement) -> None:
    model, net = ours(placement), theirs("decoder", placement)
    load(model.decoder, of_decoder(net.state_dict()))
    x, memory = torch.randn(3, 6, WIDTH).double(), torch.randn(3, 5, WIDTH).double()
    real, seen = real_tokens(LENGTHS, x), real_tokens(SOURCES, memory)
    future = torch.ones(6, 6, dtype=torch.bool).triu(1)
    expected = net(x, memory, tgt_mask=future, memory_key_padding_mask=~seen)
    context = Context(lengths=LENGTHS, memory=memory, memory_lengths=SOURCES)
    stack, norm = model.decoder.stack, model.decoder.norm
    torch.testing.assert_close(norm(stack(x, None, context)[0])[real], expected[real], rtol=0, atol=1e-12)
    state = stack.init_state(3)
    for t in range(6):
        y, state = stack.step(x[:, t], state, Context(memory=memory, memory_lengths=SOURCES))
        torch.testing.assert_close(norm(y), expected[:, t], rtol=0, atol=1e-12)


def test_gradients_reach_both_sides_as_in_torch() -> None:
    model, encoder, decoder = ours("after"), theirs("encoder", "after"), theirs("decoder", "after")
    load(model.encoder, of_encoder(encoder.state_dict()))
    load(model.decoder, of_decoder(decoder.state_dict()))
    source, x, weights = (torch.randn(3, n, WIDTH).double() for n in (5, 6, 6))
    padding = ~real_tokens(SOURCES, source)
    memory = encoder(source, src_key_padding_mask=padding)
    future = torch.ones(6, 6, dtype=torch.bool).triu(1)
    (decoder(x, memory, tgt_mask=future, memory_key_padding_mask=padding) * weights).sum().backward()
    memory, _ = model.encoder.stack(source, None, Context(lengths=SOURCES))
    y, _ = model.decoder.stack(x, None, Context(memory=memory, memory_lengths=SOURCES))
    (y * weights).sum().backward()
    gradients = {name: p.grad for name, p in encoder.named_parameters()}
    for name, expected in of_encoder(gradients).items():
        torch.testing.assert_close(model.encoder.get_parameter(name).grad, expected, rtol=1e-9, atol=1e-10)
    gradients = {name: p.grad for name, p in decoder.named_parameters()}
    for name, expected in of_decoder(gradients).items():
        torch.testing.assert_close(model.decoder.get_parameter(name).grad, expected, rtol=1e-9, atol=1e-10)
