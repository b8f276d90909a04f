"""How long a checkpoint of 100 million parameters takes: weights, two moments of each, hashed, synced and read back.

python benchmarks/save_time.py --millions 100 --repeats 4 --folder /tmp
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import torch  # noqa: E402

from regard.training import checkpoint, tensors  # noqa: E402
from regard.training.checkpoint import Contents  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    weights = {f"layers.{i}.weight": torch.randn(1000, 1000) for i in range(options.millions)}
    moments = {f"optimiser/{name}/{part}": torch.randn(1000, 1000) for name in weights for part in ("first", "second")}
    total = (tensors.size_of(weights) + tensors.size_of(moments)) / 1e9
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        for step in range(1, options.repeats + 1):
            os.sync()
            start = time.perf_counter()
            path = checkpoint.save(Path(place), step, Contents(weights, {}, moments, {}))
            saved = time.perf_counter()
            checkpoint.verify(path)
            verified = time.perf_counter()
            times = f"saved and read back in {saved - start:.2f} s, verified in {verified - saved:.2f} s"
            print(f"{total:.1f} GB {times}", flush=True)
            shutil.rmtree(path)


if __name__ == "__main__":
    main()
