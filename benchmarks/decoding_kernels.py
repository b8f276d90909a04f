"""The kernels of a step of decoding, one by one, beside torch's own, on a CUDA device.

    python benchmarks/decoding_kernels.py

Microseconds a call inside a captured graph of many calls in turn, each with weights of its own, so that no cache holds
them; what the bytes alone would take at 4.2 TB/s stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decoding.drawing import next_tokens
from regard.decoding.logits_processing import GREEDY, RowSettings, Sampling, kind_of, raw_log_probs
from regard.kernels.decode_attention import decode_attention
from regard.kernels.decode_linear_triton import linear
from regard.kernels.decode_rows_triton import rows_linear
from regard.kernels.norm_triton import norm

BYTES = 4.2e12
CALLS = 48
CACHE = 400e6  # bytes of weights after which nothing of the first is left in the cache
VOCABULARY = 50257


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def timed(calls: Sequence[Callable[[], object]]) -> float:
    """Microseconds of one call, of a graph of all of them."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls[:2]:
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    graph.replay()
    times = []
    for _ in range(10):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / len(calls))
    return sorted(times)[len(times) // 2]


def row(title: str, n_bytes: float, **ways: Sequence[Callable[[], object]]) -> None:
    cells = []
    for name, calls in ways.items():
        try:
            cells.append(f"{name} {timed(calls):.2f}")
        except Exception as error:  # one way's failure is not the others'
            cells.append(f"{name} {type(error).__name__}: {(str(error).splitlines() or [''])[0][:80]}")
    print(f"| {title} | {n_bytes / BYTES * 1e6:.2f} | {' | '.join(cells)} |", flush=True)


def products(n_rows: int, n: int, k: int) -> None:
    x, bias, size = drawn(n_rows, 1, k), drawn(n), n * k * 2
    weights = [drawn(n, k) for _ in range(min(CALLS, max(2, int(CACHE / size))))]
    ways: dict[str, list[Callable[[], object]]] = {
        "torch": [lambda w=w: F.linear(x, w, bias) for w in weights],
    }
    kernel = linear if n_rows <= 4 else rows_linear
    ways["kernel"] = [lambda w=w: kernel(x, w, bias, "gelu_tanh", None) for w in weights]
    row(f"{n} x {k}, {n_rows} rows", size, **ways)


def heads(n_rows: int, k: int) -> None:
    x, size = drawn(n_rows, k), VOCABULARY * k * 2
    weights = [drawn(VOCABULARY, k) for _ in range(6)]
    padded = [F.pad(w, (0, 0, 0, -VOCABULARY % 64)) for w in weights]
    row(
        f"head of {k}, {n_rows} rows",
        size,
        torch=[lambda w=w: F.linear(x, w) for w in weights],
        kernel=[lambda w=w: (linear if n_rows <= 4 else rows_linear)(x, w, None, None, None) for w in weights],
        padded=[lambda w=w: F.linear(x, w) for w in padded],
    )


def norms(n_rows: int, width: int) -> None:
    x, add, weight, bias = drawn(n_rows, width), drawn(n_rows, width), drawn(width), drawn(width)
    row(
        f"x + a and its LayerNorm, {n_rows} x {width}",
        n_rows * width * 8,
        torch=[lambda: F.layer_norm(x + add, (width,), weight, bias)] * CALLS,
        kernel=[lambda: norm(x, weight, bias, 1e-5, centred=True, add=add)] * CALLS,
    )


def chains(width: int) -> None:
    """A norm and a product in turn."""
    x, bias = drawn(1, width), drawn(width)
    weights = [drawn(width, width) for _ in range(CALLS)]

    def pair(w: Tensor) -> None:
        linear(norm(x, bias, bias, 1e-5, centred=True)[1], w, bias, None, x)

    row(f"norm + {width} x {width}", width * width * 2, kernels=[lambda w=w: pair(w) for w in weights])


def drawings(n_rows: int) -> None:
    logits = drawn(n_rows, VOCABULARY)
    uniform = torch.rand(n_rows, device="cuda", dtype=torch.float64)

    def kernel(settings: Sampling) -> list[Callable[[], object]]:
        rows = RowSettings.of([settings] * n_rows, logits.device)
        kind = kind_of([settings])
        return [lambda: next_tokens(logits, rows, uniform, kind)] * 8

    def plainly() -> object:
        return raw_log_probs(logits).gather(-1, logits.argmax(-1, keepdim=True))

    size = n_rows * VOCABULARY * 2
    row(f"greedy, {n_rows} rows", size, torch=[plainly] * 8, kernel=kernel(GREEDY))
    ways = {
        "plain": Sampling(),
        "top_k": Sampling(top_k=50),
        "top_p": Sampling(top_p=0.9),
        "min_p": Sampling(min_p=0.1),
    }
    row(f"drawing, {n_rows} rows", size, **{name: kernel(settings) for name, settings in ways.items()})


def attentions(n_rows: int, heads: int, context: int) -> None:
    q, k, v = drawn(3, n_rows, heads, 64)
    caches = [(drawn(n_rows, 512, heads, 64), drawn(n_rows, 512, heads, 64)) for _ in range(12)]
    count, weight = torch.full((n_rows,), context, device="cuda"), drawn(64)
    modern = {"norms": (weight, weight, 1e-5), "base": 10000.0}
    row(
        f"attention, {n_rows} rows, {heads} heads, {context} keys",
        n_rows * heads * context * 64 * 4,
        plain=[lambda c=c: decode_attention(q, (k, v), c, count, scale=0.125) for c in caches],
        modern=[lambda c=c: decode_attention(q, (k, v), c, count, scale=0.125, **modern) for c in caches],
    )


@torch.no_grad()
def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device: this table is of one")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bfloat16, microseconds\n")
    print("| what | bytes' floor | measured |\n| --- | --- | --- |")
    for n, k in ((2304, 768), (768, 768), (3072, 768), (768, 3072), (4800, 1600), (1600, 6400), (80, 1536)):
        for n_rows in (1, 2, 4, 8, 64):
            products(n_rows, n, k)
    for n_rows, k in ((1, 768), (64, 768), (1, 1600), (64, 1600)):
        heads(n_rows, k)
    for n_rows, width in ((1, 768), (64, 768), (64, 1600)):
        norms(n_rows, width)
    for width in (768, 1600):
        chains(width)
    for n_rows in (1, 64):
        drawings(n_rows)
    for n_rows, n_heads in ((1, 12), (64, 12), (64, 25)):
        attentions(n_rows, n_heads, 256)


if __name__ == "__main__":
    main()
