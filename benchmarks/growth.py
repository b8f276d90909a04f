"""Time and peak memory of preparing large data, each in a process of its own.

    python benchmarks/growth.py --folder BIG [--only words] [--source OTHER/src] > benchmarks/results/growth.md

BIG is filled once with made-up data: text of 200 MB and of 1 GB with the word frequencies of a language, a labelled
table of two million rows and a series of a million hours. What is measured is a whole `regard train` of one step, or of
one pass of counting, since that is what a person waits for. --source measures another version of the package beside it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import numpy as np

MB, ROWS = 1_000_000, 2_040_000
WORDS, LINE, AT_ONCE = 50_000, 12, 600_000
COUNTED = ("--model", "ngram", "--memory", "256M", "--set", "data.tokens=words", "--set", "model.order=3")
ONE_STEP = ("--model", "lstm", "--size", "tiny", "--budget", "1steps", "--set", "train.length=64")


@dataclass(frozen=True)
class Case:
    """A file of the folder and what `regard train` is told beside it."""

    file: str
    options: tuple[str, ...]


CASES = {
    "bytes, 200 MB": Case("200.txt", (*ONE_STEP, "--set", "data.tokens=bytes")),
    "bytes, 1 GB": Case("1000.txt", (*ONE_STEP, "--set", "data.tokens=bytes")),
    "characters, 1 GB": Case("1000.txt", ONE_STEP),
    "words, 200 MB": Case("200.txt", (*ONE_STEP, "--set", "data.tokens=words", "--set", "data.vocab_size=20000")),
    "words, 1 GB": Case("1000.txt", (*ONE_STEP, "--set", "data.tokens=words", "--set", "data.vocab_size=20000")),
    "bpe, 200 MB": Case("200.txt", (*ONE_STEP, "--set", "data.tokens=bpe")),
    "bpe, 1 GB": Case("1000.txt", (*ONE_STEP, "--set", "data.tokens=bpe")),
    "n-gram of words, 200 MB, --memory 256M": Case("200.txt", COUNTED),
    "n-gram of words, 1 GB, --memory 256M": Case("1000.txt", COUNTED),
    "labelled, 2 M rows": Case("labelled.csv", ("--model", "classifier", "--size", "tiny", "--budget", "1steps")),
    "series, 1 M rows": Case(
        "series.csv", ("--model", "forecaster", "--size", "tiny", "--budget", "1steps", "--target", "load")
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--source", help="the src folder of the version to measure; the installed one without it")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print("| data | wall s | CPU s | peak MB | exit |\n| --- | --- | --- | --- | --- |")
    for name, case in CASES.items():
        if given.only in name:
            made(given.folder / case.file)
            print(f"| {name} | {measured(case, given.folder, given.source)} |", flush=True)


def measured(case: Case, folder: Path, source: str | None) -> str:
    """Wall seconds, CPU seconds, peak memory and exit code of one command, as cells."""
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "regard", "train", str(folder / case.file), *case.options, "--out", str(out), "-q"]
    environment = {**os.environ, **({"PYTHONPATH": source} if source else {})}
    begin = time.monotonic()
    # wait4 gives the peak of this child alone; RUSAGE_CHILDREN would give the largest of all so far.
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    shutil.rmtree(out, ignore_errors=True)
    cells = (time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MB)
    return " | ".join([*(f"{cell:.0f}" for cell in cells), str(child.returncode)])


def made(path: Path) -> None:
    """The file, made the first time it is asked for."""
    if path.exists():
        return
    beside = path.with_suffix(".part")
    with open(beside, "wb") as stream:
        if path.name == "labelled.csv":
            stream.write(b"text,label\n")
            for lines in islice(text_lines(sys.maxsize, 5), ROWS * 5 // AT_ONCE):
                stream.write(b"".join(b"%s,%s\n" % (line, b"good" if len(line) % 2 else b"bad") for line in lines))
        elif path.name == "series.csv":
            stream.write(b"time,load\n")
            hours = np.arange(1_000_000)
            load = 100 + 20 * np.sin(hours * 2 * np.pi / 24) + np.random.default_rng(0).normal(0, 3, len(hours))
            first = datetime(1900, 1, 1)
            for hour, value in zip(hours.tolist(), load.tolist(), strict=True):
                stream.write(b"%s,%.2f\n" % ((first + timedelta(hours=hour)).isoformat(" ").encode(), value))
        else:
            for lines in text_lines(int(path.stem) * MB, LINE):
                stream.write(b"\n".join(lines) + b"\n")
    beside.rename(path)


def text_lines(size: int, words: int) -> Iterator[list[bytes]]:
    """Lines of made-up words whose frequencies fall as those of a language, a batch at a time."""
    chance = np.random.default_rng(0)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgk", np.uint8)
    known = sorted({bytes(chance.choice(letters, chance.integers(2, 11))) for _ in range(WORDS)})
    chance.shuffle(known)
    weights = 1 / np.arange(1, len(known) + 1)
    ends = np.cumsum(weights / weights.sum())
    written = 0
    while written < size:
        drawn = np.searchsorted(ends, chance.random(AT_ONCE)).tolist()
        taken = [known[min(number, len(known) - 1)] for number in drawn]
        lines = [b" ".join(taken[place : place + words]) for place in range(0, len(taken), words)]
        written += sum(map(len, lines)) + len(lines)
        yield lines


if __name__ == "__main__":
    main()
