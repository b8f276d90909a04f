"""Memory that a large table of a series takes, while it is read and when a training of it begins.

    python benchmarks/series_memory.py --rows 3000000

Rows of minutes with six columns of numbers are written to a CSV. Each case is a process of its own. Peak is its largest
resident memory (`getrusage`), pages of mapped files among it, which the system takes back when it needs them; own is
the most that was in no file, sampled every twentieth of a second (Linux).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = ("load", "a", "b", "c", "d", "e")
AT_ONCE = 100_000
LOADING = """
import sys
from regard.data.panel import read_panel
from regard.data.series import Roles
read_panel(sys.argv[1], Roles(target="load"))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, regard = Path(folder) / "minutes.csv", [sys.executable, "-m", "regard"]
        write(path, options.rows)
        asked = [str(path), "--target", "load"]
        training = ["--model", "forecaster", "--size", "tiny", "--budget", "5steps", "--device", "cpu"]
        cases = {
            "importing": [sys.executable, "-c", "import regard.data.panel"],
            "reading": [sys.executable, "-c", LOADING, str(path)],
            "`regard inspect`": [*regard, "inspect", *asked],
            "`regard train`, 5 steps": [*regard, "train", *asked, *training, "--out", str(Path(folder) / "run")],
        }
        print("| | peak, MB | own, MB | CPU s |\n| --- | ---: | ---: | ---: |")
        for name, command in cases.items():
            peak, own, seconds = measured(command)
            print(f"| {name} | {peak:,.0f} | {own:,.0f} | {seconds:.1f} |", flush=True)


def write(path: Path, rows: int) -> None:
    chance, first = np.random.default_rng(1), np.datetime64("2018-01-01T00:00:00")
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(["time", *COLUMNS]) + "\n")
        for start in range(0, rows, AT_ONCE):
            minutes = np.arange(start, min(start + AT_ONCE, rows))
            numbers = 10 * chance.normal(size=(len(minutes), len(COLUMNS)))
            numbers[:, 0] += 100 + 30 * np.sin(2 * np.pi * minutes / 1440)
            for time_, row in zip((first + 60 * minutes).tolist(), numbers.tolist(), strict=True):
                file.write(",".join([str(time_), *(f"{number:.3f}" for number in row)]) + "\n")


def measured(command: list[str]) -> tuple[float, float, float]:
    """Peak and own memory in MB, and seconds of the processor."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    own = 0
    while True:
        found, status, used = os.wait4(child.pid, os.WNOHANG)
        if found:
            break
        told = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{child.pid}/status").read_text(encoding="ascii"))
        own = max(own, int(told[1]) if told else 0)
        time.sleep(0.05)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return used.ru_maxrss / 1024, own / 1024, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
