"""Windows and slopes as rules against the same as masks, and blocks told by their borders against every pair."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from regard.kernels.flex import BLOCK, block_mask


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 2, 100, 127, 128, 129, 130, 255, 256, 257, 300, 512, 700])
def test_blocks_are_those_of_the_pairs_in_them(causal, window):
    length = 4 * BLOCK
    apart = torch.arange(length)[:, None] - torch.arange(length)
    seen = apart.abs() < (length if window is None else window)
    seen = seen & (apart >= 0) if causal else seen
    pairs = seen.unflatten(1, (-1, BLOCK)).unflatten(0, (-1, BLOCK)).transpose(1, 2).flatten(2)  # (n, n, pairs)
    mask = block_mask(length, causal, window, torch.device("cpu"))
    some, whole = torch.zeros(4, 4, dtype=torch.bool), torch.zeros(4, 4, dtype=torch.bool)
    for found, counts, numbers in (
        (some, mask.kv_num_blocks, mask.kv_indices),
        (whole, mask.full_kv_num_blocks, mask.full_kv_indices),
    ):
        for row in range(4):
            found[row, numbers[0, 0, row, : counts[0, 0, row]].long()] = True
    assert torch.equal(some | whole, pairs.any(-1))
    assert torch.equal(whole, pairs.all(-1)), "a block that is seen as a whole is not asked pair by pair"


COMPILED = """
import sys

import torch

from regard.kernels import flex
from regard.mixers.attention import AttentionConfig

device, backend, tolerance, cases = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
flex.DEVICES = (device,)
for settings in (dict(position="alibi", base=3.0, window=40), dict(window=70, n_kv_heads=1), dict(window=130),
                 dict(window=50, causal=False), dict(position="alibi"), dict(position="alibi", causal=False))[:cases]:
    torch.manual_seed(0)
    torch.compiler.reset()
    mixer = AttentionConfig(32, 2, **settings).build().to(device)
    x = torch.randn(2, 256, 32, device=device)
    found = []
    # Torch gives flex attention gradients on a GPU alone.
    with torch.set_grad_enabled(device == "cuda"):
        for call in (mixer, torch.compile(mixer, backend=backend, fullgraph=True)):
            y = call(x)[0]
            more = torch.autograd.grad(y.sin().sum(), list(mixer.parameters())) if device == "cuda" else ()
            found.append([y, *more])
        graphs = torch._dynamo.explain(mixer)(x).graphs
    for plain, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, rtol=tolerance, atol=tolerance)
    assert any("flex_attention" in str(graph.code) for graph in graphs), settings
"""


@pytest.mark.slow
def test_what_is_compiled_computes_what_the_masks_say():
    """In a process of its own: here shapes are checked at every call, which no compiler looks through."""
    subprocess.run([sys.executable, "-c", COMPILED, "cpu", "aot_eager", "1e-4", "2"], check=True)


@pytest.mark.gpu
def test_what_is_compiled_for_a_gpu_computes_what_the_masks_say_with_its_gradients():
    subprocess.run([sys.executable, "-c", COMPILED, "cuda", "inductor", "2e-2", "6"], check=True)
