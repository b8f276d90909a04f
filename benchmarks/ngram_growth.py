"""How the cost of counting grows with the text: parts of one text, each built in a process of its own.

    python benchmarks/ngram_growth.py PATH/train.txt.xz --order 5 --memory 1G

Seconds are from token ids to the finished model; peak memory is of the whole process. The last column is seconds
divided by n log n, which stays level when that is how the cost grows.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
PARTS = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder) / "ids.npy"
        vocab_size, seconds = tokenize(options.path, ids)
        print(f"{vocab_size} words, tokenised in {seconds:.0f} s", flush=True)
        rows = []
        for part in PARTS:
            command = [sys.executable, __file__, str(ids), "--order", str(options.order), "--memory", options.memory]
            done = subprocess.run(
                [*command, "--one", f"{part}:{vocab_size}"], capture_output=True, text=True, check=True
            )
            rows.append(json.loads(done.stdout))
            print(rows[-1], flush=True)
    write(rows, options)


def tokenize(path: str, out: Path) -> tuple[int, float]:
    """Paragraphs as sentences, words at blanks."""
    from regard.data.shard import make_shard
    from regard.data.source import read_documents
    from regard.data.tokenizer import train_tokenizer

    start = time.perf_counter()
    texts = [" ".join(text.split()) for text in read_documents(path, documents="blank")]
    tokenizer = train_tokenizer("words", texts)
    np.save(out, make_shard(texts, tokenizer).ids)
    return tokenizer.vocab_size, time.perf_counter() - start


def measure(options: argparse.Namespace) -> None:
    """One part, in this process."""
    from regard.models.ngram import NgramConfig
    from regard.training.settings import TrainSettings

    share, vocab_size = options.one.split(":")
    ids = np.load(options.path, mmap_mode="r")
    ids = ids[: int(len(ids) * float(share))]
    model = NgramConfig(int(vocab_size), options.order).build()
    start = time.perf_counter()
    found = model.estimate(model.count(ids, memory=TrainSettings(memory=options.memory).memory_bytes))
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024  # pyright: ignore[reportOptionalSubscript]
    facts = {"tokens": len(ids), "n_grams": sum(found.n_grams), "seconds": round(seconds, 2), "peak_mb": peak}
    print(json.dumps(facts | {"ns_per_n_log_n": round(1e9 * seconds / (len(ids) * math.log2(len(ids))), 2)}))


def write(rows: list[dict], options: argparse.Namespace) -> None:
    small, large = min(rows, key=lambda row: row["tokens"]), max(rows, key=lambda row: row["tokens"])
    power = math.log(large["seconds"] / small["seconds"]) / math.log(large["tokens"] / small["tokens"])
    lines = [
        "# Counting a growing text",
        "",
        f"`benchmarks/ngram_growth.py {Path(options.path).name} --order {options.order} --memory {options.memory}`,",
        f"two cores. Between the smallest and the largest part seconds grow as tokens to the power {power:.2f}.",
        "",
        "| " + " | ".join(rows[0]) + " |",
        "|" + " ---: |" * len(rows[0]),
        *("| " + " | ".join(f"{value:,}" for value in row.values()) + " |" for row in rows),
    ]
    (RESULTS / "ngram-growth.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
