"""How much sooner a comparison ends with several workers, and whether its report is the same.

    python benchmarks/side_by_side.py --workers 2 --repeat 1 [--steps 600]

Each comparison is a command of its own, with one thread a training. Prints the wall and processor time of each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# What hangs on the clock, on the memory of a process, and on where the comparison lies.
CHANCE = {"seconds", "speed", "peak_memory", "side_by_side", "path", "finding", "notes", "versions"}
COMPARED = ("world:witness?train=4000", "--models", "fnn,rnn,lstm,gpt", "--seeds", "2")
EVERY = 0.2  # seconds between two looks at the processes
SETTINGS = ("--parameters", "60000", "--set", "train.batch_size=16")


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if key not in CHANCE}
    return [plain(part) for part in value] if isinstance(value, list) else value


def timed(out: Path, *flags: str) -> tuple[float, list[float], Any]:
    """Wall seconds, processor seconds of the command and of each worker, and the report of a comparison."""
    words = [sys.executable, "-m", "regard", "compare", *COMPARED, *SETTINGS, "--quiet", "--out", str(out), *flags]
    spent, began = dict[int, float](), time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"}) as command:
        while command.poll() is None:
            spent |= processor_seconds(command.pid)
            time.sleep(EVERY)
    if command.returncode:
        raise SystemExit(f"the comparison failed with {command.returncode}")
    wall, ours = time.monotonic() - began, spent.pop(command.pid)
    return wall, [ours, *sorted(spent.values(), reverse=True)], json.loads((out / "report.json").read_bytes())


def processor_seconds(command: int) -> dict[int, float]:
    """Of a process and of those that it started, as Linux tells it."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        number = int(file.parent.name)
        if command in (number, int(fields[1])):
            found[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--steps", type=int, default=600, help="of a model")
    asked = parser.parse_args()
    print("| workers | wall s | processor s: command | each worker | longest path | same report |")
    print("| ---: | ---: | ---: | ---: | ---: | --- |")
    for _ in range(asked.repeat):
        with tempfile.TemporaryDirectory() as folder:
            walls, paths, reports = [], [], []
            for count in (1, asked.workers):
                wall, (ours, *workers), report = timed(
                    Path(folder) / str(count), "--workers", str(count), "--budget", f"{asked.steps}steps"
                )
                walls.append(wall)
                # What no further core makes shorter: the command's own part, and the worker that had most to do.
                paths.append(ours + max(workers, default=0.0))
                reports.append(plain(report))
                same = "" if count == 1 else "yes" if reports[0] == reports[1] else "NO"
                each = ", ".join(f"{spent:.1f}" for spent in workers if spent > 1)
                told = (str(count), f"{wall:.1f}", f"{ours:.1f}", each, f"{paths[-1]:.1f}", same)
                print(f"| {' | '.join(told)} |", flush=True)
            told = f"{walls[0] / walls[1]:.2f} times as fast by the clock, {paths[0] / paths[1]:.2f} by processor time"
            print(f"{told}\n", flush=True)


if __name__ == "__main__":
    main()
