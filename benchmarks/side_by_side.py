"""How much sooner a comparison ends with several workers, and whether its report is the same.

    python benchmarks/side_by_side.py --workers 2 --repeat 1

Each comparison is a command of its own, with one thread a training. Prints the wall and processor time of each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# What hangs on the clock, on the memory of a process, and on where the comparison lies.
CHANCE = {"seconds", "speed", "peak_memory", "side_by_side", "path", "finding", "notes", "versions"}
COMPARED = ("world:witness?train=4000", "--models", "fnn,rnn,lstm,gpt", "--budget", "600steps", "--seeds", "2")
SETTINGS = ("--parameters", "60000", "--set", "train.batch_size=16")


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if key not in CHANCE}
    return [plain(part) for part in value] if isinstance(value, list) else value


def timed(out: Path, *flags: str) -> tuple[float, float, Any]:
    """Wall seconds, processor seconds and the report of a comparison."""
    words = [sys.executable, "-m", "regard", "compare", *COMPARED, *SETTINGS, "--quiet", "--out", str(out), *flags]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    return wall, spent, json.loads((out / "report.json").read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    asked = parser.parse_args()
    print("| workers | wall s | processor s | busy cores | trainings s | same report |")
    print("| ---: | ---: | ---: | ---: | ---: | --- |")
    for _ in range(asked.repeat):
        with tempfile.TemporaryDirectory() as folder:
            walls, reports = [], []
            for count in (1, asked.workers):
                wall, spent, report = timed(Path(folder) / str(count), "--workers", str(count))
                walls.append(wall)
                reports.append(plain(report))
                inside = sum(run["seconds"] for row in report["rows"] for run in row["runs"])
                same = "" if count == 1 else "yes" if reports[0] == reports[1] else "NO"
                told = (str(count), f"{wall:.1f}", f"{spent:.1f}", f"{spent / wall:.2f}", f"{inside:.1f}", same)
                print(f"| {' | '.join(told)} |", flush=True)
            print(f"{walls[0] / walls[1]:.2f} times as fast\n", flush=True)


if __name__ == "__main__":
    main()
