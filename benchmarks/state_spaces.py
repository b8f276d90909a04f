"""Time the state-space kernels on a CUDA device, each beside its readable form and in several ways of being launched.

    python benchmarks/state_spaces.py                      everything, under four minutes on an H200
    python benchmarks/state_spaces.py --only ssd,scan      parts of it: ssd, scan, convolution, training

The floor of a line is the bytes that must move, each input read and each output written once, at 4.2 TB/s.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from regard.core import registry
from regard.kernels import convolution_triton, selective_scan, ssd_launch
from regard.kernels.convolution import causal_convolution, causal_convolution_readable
from regard.kernels.selective_scan import gated_selective_scan
from regard.kernels.ssd import ssd
from regard.kernels.ssd_readable import ssd_chunked

BYTES_PER_SECOND = 4.2e12
SSD_SHAPES = ((8, 2048), (2, 16384))
HEADS, WIDTH, STATES = 24, 64, 128
SsdLaunch, ScanLaunch = ssd_launch.Launch, selective_scan.Launch
ConvolutionLaunch, Walk = convolution_triton.Launch, ssd_launch.Walk
SSD_LAUNCHES = (
    SsdLaunch(),
    SsdLaunch(walks=(Walk((64, 64)),)),
    SsdLaunch(walks=(Walk((64, 64), 4, 3),)),
    SsdLaunch(walks=(Walk((64, 128), 4, 2),)),
    SsdLaunch(walks=(Walk((32, 32), 2, 4),), heads=4, stages=(1, 1, 1)),
    SsdLaunch(heads=12),
)
SCAN_LAUNCHES = (
    ScanLaunch(),
    ScanLaunch(128, 4, 32, 1, 200),
    ScanLaunch(128, 4, 32, 1, 168),
    ScanLaunch(128, 4, 16, 1),
    ScanLaunch(128, 4, 16, 1, 128),
    ScanLaunch(128, 2, 32, 1, 168),
    ScanLaunch(64, 4, 32, 1),
    ScanLaunch(256, 4, 32, 1),
)
CONVOLUTION_LAUNCHES = (
    ConvolutionLaunch(),
    ConvolutionLaunch(32, 128, 1, 8),
    ConvolutionLaunch(128, 128, 1, 8),
    ConvolutionLaunch(64, 128, 1, 4),
    ConvolutionLaunch(64, 64, 1, 8),
    ConvolutionLaunch(64, 256, 2, 8),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="ssd,scan,convolution,training", help="parts, with commas between")
    chosen = parser.parse_args().only.split(",")
    if not torch.cuda.is_available():
        sys.exit("no CUDA device: the kernels are timed on one")
    if importlib.util.find_spec("mamba_ssm") is None:
        print("mamba_ssm is not installed: no column of its own kernels")
    began = time.perf_counter()
    parts = {"ssd": ssd_lines, "scan": scan_lines, "convolution": convolution_lines, "training": training_lines}
    for name in chosen:
        for label, line in parts[name]():
            attempt(label, line)
        print(f"-- {name} done after {time.perf_counter() - began:.0f} s", flush=True)


def attempt(label: str, line: Callable[[], str]) -> None:
    """One line of the table, whatever happens to it."""
    try:
        print(f"{label:<70} {line()}", flush=True)
    except Exception as error:  # the other lines are still worth having
        print(f"{label:<70} {type(error).__name__}: {str(error).strip().splitlines()[-1][:160]}", flush=True)
    finally:
        torch.cuda.empty_cache()


Line = tuple[str, Callable[[], str]]


def ssd_lines() -> Iterator[Line]:
    for batch, length in SSD_SHAPES:
        inputs = ssd_inputs(batch, length)
        # x, d_y, d_x and y once, B and C and their gradients, dt and the decays and theirs
        floor = inputs[0].nbytes * 4 + 4 * (inputs[3].nbytes * 2 + inputs[1].nbytes)
        title = f"ssd {batch} x {length}"
        yield f"{title}, readable", lambda i=inputs, f=floor: timed(ssd_readable, i, f)
        for launch in SSD_LAUNCHES:
            yield f"{title}, {brief(launch)}", lambda i=inputs, f=floor, launch=launch: ssd_with(launch, i, f)
    yield "ssd 8 x 2048 in float32, default", lambda: timed(ssd, ssd_inputs(8, 2048, torch.float32), 2 * floor)


def ssd_inputs(batch: int, length: int, dtype: torch.dtype = torch.bfloat16) -> list[Tensor]:
    torch.manual_seed(0)
    mixed = torch.randn(batch, length, HEADS * WIDTH + 2 * STATES, device="cuda").to(dtype)
    x, b, c = mixed.split([HEADS * WIDTH, STATES, STATES], -1)
    dt = F.softplus(torch.randn(batch, length, HEADS, device="cuda") - 4)
    h = torch.zeros(batch, HEADS, WIDTH, STATES, device="cuda")
    rates = -torch.arange(1.0, HEADS + 1, device="cuda")
    leaves = [x.unflatten(-1, (HEADS, WIDTH)), dt, dt * rates, b[:, :, None], c[:, :, None], rates, h]
    return [t.detach().requires_grad_() for t in leaves]


def ssd_readable(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor
) -> tuple[Tensor, Tensor]:
    y, last = ssd_chunked(x * dt.to(x.dtype)[..., None], decay, b, c, h, 256)
    return y + skip.to(x.dtype)[:, None] * x, last


def ssd_with(launch: SsdLaunch, inputs: list[Tensor], floor: int) -> str:
    kept = dict(ssd_launch.LAUNCH)
    try:
        ssd_launch.LAUNCH[torch.bfloat16] = launch
        return timed(ssd, inputs, floor, kernels=True)
    finally:
        ssd_launch.LAUNCH.update(kept)


def scan_lines() -> Iterator[Line]:
    for batch, length in ((8, 2048), (2, 16384)):
        inputs = scan_inputs(batch, length)
        # u, dt, z, y and their gradients
        floor = inputs[0].nbytes * 8
        for launch in SCAN_LAUNCHES:
            label = f"gated scan {batch} x {length}, 1536 x 16, {brief(launch)}"
            yield label, lambda i=inputs, f=floor, launch=launch: scan_with(launch, i, f)


def scan_inputs(batch: int, length: int) -> list[Tensor]:
    torch.manual_seed(0)
    streams = torch.randn(batch, length, 2 * 1536, device="cuda").bfloat16()
    u, z = torch.randn(batch, length, 1536, device="cuda").bfloat16(), streams.chunk(2, -1)[1]
    raw = torch.randn(batch, length, 1536, device="cuda").bfloat16() - 4
    b, c = torch.randn(batch, length, 80, device="cuda").bfloat16()[..., 48:].chunk(2, -1)
    rates = -torch.arange(1.0, 17, device="cuda").expand(1536, 16).contiguous()
    h, skip = torch.zeros(batch, 1536, 16, device="cuda"), torch.ones(1536, device="cuda")
    return [t.detach().requires_grad_() for t in (u, raw, rates, b, c, h, skip, z)]


def scan_with(launch: ScanLaunch, inputs: list[Tensor], floor: int) -> str:
    kept = selective_scan.LAUNCH
    try:
        selective_scan.LAUNCH = launch
        return timed(gated_selective_scan, inputs, floor, kernels=True)
    finally:
        selective_scan.LAUNCH = kept


def convolution_lines() -> Iterator[Line]:
    torch.manual_seed(0)
    x = torch.randn(8, 2048, 3352, device="cuda").bfloat16()[..., 1536 : 1536 + 1792]
    others = (torch.randn(8, 3, 1792), torch.randn(1792, 4), torch.randn(1792))
    inputs = [t.detach().cuda().requires_grad_() for t in (x, *others)]
    floor = 4 * x.numel() * 2
    yield "convolution 8 x 2048 x 1792, torch's own", lambda: timed(convolution_of_torch, inputs, floor)
    yield (
        "convolution 8 x 2048 x 1792, readable",
        lambda: timed(lambda *i: (causal_convolution_readable(*i), None), inputs, floor),
    )
    for launch in CONVOLUTION_LAUNCHES:
        label = f"convolution 8 x 2048 x 1792, {brief(launch)}"
        yield label, lambda launch=launch: convolution_with(launch, inputs, floor)


def convolution_of_torch(x: Tensor, recent: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, None]:
    seen = torch.cat([recent.to(x.dtype), x], 1).transpose(1, 2)
    y = F.conv1d(seen, weight.to(x.dtype)[:, None], bias.to(x.dtype), groups=x.shape[2])
    return F.silu(y.transpose(1, 2)), None


def convolution_with(launch: ConvolutionLaunch, inputs: list[Tensor], floor: int) -> str:
    kept = convolution_triton.LAUNCH
    try:
        convolution_triton.LAUNCH = launch
        return timed(lambda *i: (causal_convolution(*i), None), inputs, floor, kernels=True)
    finally:
        convolution_triton.LAUNCH = kept


def timed(
    function: Callable[..., tuple[Tensor, Tensor | None]], inputs: list[Tensor], floor: int, kernels: bool = False
) -> str:
    """Forward, forward and backward, the share of the floor, and what each kernel takes of it."""
    y, _ = function(*inputs)
    upper = torch.randn_like(y)

    def both() -> None:
        torch.autograd.grad(function(*inputs)[0], inputs, upper)

    forward, whole = milliseconds(lambda: function(*inputs)), milliseconds(both)
    share = floor / BYTES_PER_SECOND * 1e3 / whole
    line = f"forward {forward:.3f}, both {whole:.3f} ms, {100 * share:.0f}% of the floor"
    return f"{line}; us: {by_kernel(both)}" if kernels else line


def milliseconds(work: Callable[[], object], repeats: int = 20) -> float:
    """The median of single runs, by events on the device."""
    for _ in range(3):
        work()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in pairwise(marks))


def by_kernel(work: Callable[[], object], most: int = 7) -> str:
    """Microseconds of the kernels that take the longest, a run."""
    work()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(3):
            work()
        torch.cuda.synchronize()
    spent = {e.key: e.self_device_time_total / 3 for e in seen.key_averages() if e.device_type == DeviceType.CUDA}
    longest = sorted(spent.items(), key=lambda item: -item[1])[:most]
    return ", ".join(f"{name[:28]} {microseconds:.0f}" for name, microseconds in longest)


def brief(launch: SsdLaunch | ScanLaunch | ConvolutionLaunch) -> str:
    if isinstance(launch, SsdLaunch):
        walks = "/".join(f"{w.block[0]}x{w.block[1]},{w.warps},{w.stages}" for w in launch.walks)
        return f"{launch.chunk} {walks} {launch.heads} {launch.warps} {launch.stages}".replace(", ", ",")
    return " ".join(str(value) for value in vars(launch).values())


def training_lines() -> Iterator[Line]:
    for name in ("mamba", "mamba2"):
        for compiled in (False, True):
            how = "compiled" if compiled else "eager"
            yield f"{name} 130M, 8 x 2048, bfloat16, {how}", lambda n=name, c=compiled: trained(n, c)


def trained(name: str, compiled: bool) -> str:
    """Tokens a second and the peak of memory; for the eager form also the kernels of one step."""
    torch.manual_seed(0)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = registry.build(name, vocab_size=50304, size="paper").cuda()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(50304, (8, 2049), device="cuda")

    def loss() -> Tensor:
        vectors, _ = model(tokens[:, :-1])
        return model.head(vectors, tokens[:, 1:]) / (8 * 2048)

    forward = torch.compile(loss) if compiled else loss

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            value = forward()
        value.backward()
        optimiser.step()
        optimiser.zero_grad()

    took = milliseconds(step, 8)
    memory = torch.cuda.max_memory_allocated() / 2**30
    line = f"{8 * 2048 / took * 1e3:,.0f} tokens/s, {took:.1f} ms, {memory:.1f} GiB"
    return line if compiled else f"{line}; us: {by_kernel(step, 24)}"


if __name__ == "__main__":
    main()
