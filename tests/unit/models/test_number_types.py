"""Every registered language model trains and generates in the usual number types, of its parameters and by autocast."""

from __future__ import annotations

import pytest
import torch

from regard.core import registry
from regard.decoding.generate import Limits, generate

# Counted models have no gradients and a number type of their own.
NAMES = [name for name in registry.names() if registry.entry(name).task == "text" and name != "ngram"]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", ["parameters", "autocast"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_model_trains_and_generates(name: str, dtype: str, how: str, device: str) -> None:
    torch.manual_seed(0)
    model = registry.build(name, vocab_size=31, size="tiny").to(device)
    if how == "parameters":
        model.to(DTYPES[dtype])
    tokens = torch.randint(31, (2, 21), device=device)
    with torch.autocast(device, DTYPES[dtype], enabled=how == "autocast" and dtype != "float32"):
        vectors, _ = model(tokens[:, :-1])
        loss = model.head(vectors, tokens[:, 1:]) / 40
        loss.backward()
        text = generate(model.eval(), [tokens[0, :5].cpu()], limits=Limits(2), seed=1)[0]
    assert torch.isfinite(loss)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
    assert len(text.tokens) == 2
