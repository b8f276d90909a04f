"""Under autocast the residual stream is in half precision from the embedding on, and norms leave it so."""

from __future__ import annotations

import pytest
import torch

from regard.core import registry
from regard.layers.norm import NormConfig


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("form", ["layer", "rms"])
def test_a_norm_answers_in_the_type_that_it_reads_and_sums_in_float32(form, dtype):
    norm = NormConfig(64, form).build()
    x = (100 + torch.randn(5, 64)).to(dtype)  # a mean square that half precision could not add up
    with torch.autocast("cpu", dtype):
        y = norm(x)
    wide = norm.double()(x.double())
    assert y.dtype == dtype
    assert float((y.double() - wide).abs().max()) <= 8 * torch.finfo(dtype).eps * float(wide.abs().max())


@pytest.mark.parametrize("form", ["layer", "rms"])
def test_a_norm_of_float32_stays_one_under_autocast(form):
    norm, x = NormConfig(8, form).build(), torch.randn(3, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert norm(x).dtype == torch.float32


@pytest.mark.parametrize("settings", [{}, {"norm": "layer", "position": "learned", "activation": "gelu_tanh"}])
def test_every_layer_of_a_gpt_writes_half_precision_and_its_weights_get_gradients_in_float32(settings):
    model = registry.build("gpt", vocab_size=31, size="tiny", **settings)
    tokens, streams = torch.randint(31, (2, 9)), []
    for tap in model.stack.streams:
        tap.register_forward_hook(lambda _tap, _inputs, value: streams.append(value.dtype))
    with torch.autocast("cpu", torch.bfloat16):
        vectors, _ = model(tokens)
        loss = model.head(vectors, tokens)
    loss.backward()
    assert streams == [torch.bfloat16] * 2
    assert loss.dtype == torch.float32
    assert {parameter.grad.dtype for parameter in model.parameters()} == {torch.float32}
