"""What the training loop costs beside the bare steps: logging, display, checks, evaluation planning, one save.

    python benchmarks/loop_overhead.py --device cpu --steps 200 --repeats 5

The same batches, model, loss and update by `train` with a display and by a plain script, in turn. A step's time is the
lower quartile, which other work on the machine hardly moves; what happens only now and then is timed by itself.
"""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import torch  # noqa: E402

from regard.core import registry  # noqa: E402
from regard.data.batch import Batch  # noqa: E402
from regard.training import loop, report  # noqa: E402
from regard.training.display import Lines  # noqa: E402
from regard.training.loop import train  # noqa: E402
from regard.training.objective import next_token_loss  # noqa: E402
from regard.training.optimiser import Optimiser  # noqa: E402
from regard.training.session import Session  # noqa: E402
from regard.training.settings import TrainSettings  # noqa: E402
from regard.training.task import Task, to_device  # noqa: E402

VOCABULARY = 65


class Noise:
    """The same few batches over and over, made before the clock runs."""

    def __init__(self, rows: int, length: int) -> None:
        generator = torch.Generator().manual_seed(0)
        lengths = torch.full((rows,), length)
        self.times: list[float] = []
        self.batches = []
        for _ in range(8):
            ids = torch.randint(VOCABULARY, (rows, length + 1), generator=generator)
            self.batches.append(Batch(ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), lengths, list(range(rows))))

    def batch(self, step: int, batch_size: int) -> Batch:
        self.times.append(time.perf_counter())
        return self.batches[step % 8]

    def quartile(self) -> float:
        """Seconds of a step, from one batch to the next."""
        spans = sorted(later - earlier for earlier, later in pairwise(self.times[10:]))
        self.times = []
        return spans[len(spans) // 4]


def model_on(device: str, options: argparse.Namespace) -> torch.nn.Module:
    torch.manual_seed(0)
    return registry.build("gpt", vocab_size=VOCABULARY, size=options.size, dropout=0.0).to(device)


def bare(options: argparse.Namespace, settings: TrainSettings, sampler: Noise) -> float:
    """Seconds of a step alone."""
    model, device = model_on(options.device, options), torch.device(options.device)
    optimiser = Optimiser(model, settings)
    for step in range(options.steps):
        batch = sampler.batch(step, settings.batch_size)
        with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
            loss, count, _ = next_token_loss(model, to_device(batch, device), None)
            mean = loss / count
        mean.backward()
        torch.nn.utils.clip_grad_norm_(optimiser.parameters, 1.0)
        optimiser.step(1e-3)
        optimiser.clear()
        # The queue of a GPU is long but not endless: waiting now and then shows its pace and not that of the host.
        if device.type == "cuda" and step % 20 == 19:
            torch.cuda.synchronize()
    return sampler.quartile()


def looped(options: argparse.Namespace, settings: TrainSettings, sampler: Noise) -> tuple[float, float]:
    """Seconds of a step in the loop, and the part of the time that reading, logging and display take."""
    model, spent = model_on(options.device, options), []

    def timed(session: Session) -> None:
        start = time.process_time()
        report.read_pending(session)
        spent.append(time.process_time() - start)

    loop.read_pending = timed
    with tempfile.TemporaryDirectory() as folder:
        result = train(model, Task(sampler), settings, Path(folder) / "run", display=Lines(io.StringIO(), every=0.0))
    return sampler.quartile(), sum(spent) / result.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", default="small")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--precision", default="float32")
    options = parser.parse_args()
    settings = TrainSettings(budget=f"{options.steps}steps", batch_size=options.batch, length=options.length)
    settings = replace(settings, precision=options.precision, device=options.device, save_every=10**9)
    sampler = Noise(options.batch, options.length)
    bare(options, settings, sampler)
    ratios, readings = [], []
    for _ in range(options.repeats):
        plain = bare(options, settings, sampler)
        step, reading = looped(options, settings, sampler)
        ratios.append(step / plain)
        readings.append(reading)
        print(f"bare {1e3 * plain:.2f} ms a step, loop {1e3 * step:.2f} ms, reading {100 * reading:.2f} %", flush=True)
    middle, spread = statistics.median(ratios), max(ratios) - min(ratios)
    print(
        f"{options.device}: a step of the loop takes {100 * (middle - 1):+.1f} %, spread {100 * spread:.1f}, ", end=""
    )
    print(f"reading, logging and display {100 * statistics.median(readings):.2f} % of the time")


if __name__ == "__main__":
    main()
