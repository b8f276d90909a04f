"""Blocks of GGUF files: their numbers are those of the `gguf` package, their products those of float64."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.interop.kept_weights import OF_ONE_SCALE, in_eight_bits
from regard.kernels import decode_cpu
from regard.kernels.blocks import KINDS, blocks_linear_readable, dequantised, row_bytes
from regard.kernels.compiled import library

WIDTH = 512
HALVES = {"Q6_K": (208,), "Q4_K": (0, 2), "Q5_K": (0, 2)}


def random_blocks(kind: str, rows: int = 13) -> Tensor:
    """Any bytes are a block, but for numbers of 16 bits that are none."""
    chance = np.random.default_rng(0)
    found = chance.integers(0, 256, (rows, row_bytes(kind, WIDTH)), dtype=np.uint8).reshape(-1, KINDS[kind].bytes)
    for place in HALVES.get(kind, (0,)):
        halves = chance.uniform(-0.1, 0.1, len(found)).astype(np.float16)
        found[:, place : place + 2] = halves[:, None].view(np.uint8)
    return torch.from_numpy(found.reshape(rows, -1))


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_blocks_are_those_of_the_gguf_package(kind: str) -> None:
    gguf = pytest.importorskip("gguf")
    quants = importlib.import_module("gguf.quants")
    blocks = random_blocks(kind)
    exact = quants.dequantize(blocks.numpy(), gguf.GGMLQuantizationType[kind])
    assert np.array_equal(dequantised(blocks, kind).numpy(), exact)
    assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]] == (KINDS[kind].size, KINDS[kind].bytes)


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_blocks_are_those_of_float64(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, x, bias = random_blocks(kind), torch.randn(3, WIDTH), torch.randn(13)
    exact = x.double() @ dequantised(blocks, kind).double().T + bias
    near = 1e-5 * float(exact.abs().max())
    monkeypatch.setattr("regard.kernels.blocks.AT_ONCE", 4 * WIDTH)
    torch.testing.assert_close(blocks_linear_readable(x, blocks, kind, bias).double(), exact, rtol=1e-5, atol=near)
    if library() is None:
        pytest.skip("no C compiler")
    with torch.no_grad():
        step = decode_cpu.linear_blocks(blocks, KINDS[kind].number, WIDTH, bias)
        found = None if step is None else step(x)
    assert found is not None
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=near)


@pytest.mark.parametrize("kind", OF_ONE_SCALE)
def test_blocks_of_one_scale_are_the_same_numbers_in_eight_bits(kind: str) -> None:
    blocks = random_blocks(kind)
    blocks[0, :2] = 0  # a scale of 0
    assert torch.equal(dequantised(in_eight_bits(blocks, kind), "Q8_0"), dequantised(blocks, kind) + 0.0)
