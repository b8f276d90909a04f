"""What it costs to turn a large text into tokens, beside what others take for the same work in the same run.

    python benchmarks/preparing.py BIG.txt [--cases bytes,words,bpe] [--workers 2] [--peer-bytes 100000000]

Each row is a process of its own: a file to a folder of checked shards, nothing kept from before. Seconds are of all of
it; of these, tokenising alone is set against the peer. Peak is the memory of the process and its workers together,
pages that they share counted once, sampled every fifth of a second (Linux). CPU s are of all processes, the start of
Python among them: on a machine that others use, too, they tell more than seconds do. The last column is the same ratio
of tokenising to the peer by CPU seconds.

bytes   beside the disk: as many bytes as are read and written, copied to a file and synced
words   beside a split at blanks and a dictionary, in one process of Python
bpe     beside `encode_batch_fast` of `tokenizers`, the same tokenizer and text, all cores, ids left in the library
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

CASES = {"bytes": {}, "words": {"vocab_size": 100_000}, "bpe": {"vocab_size": 16_384}}
PEERS = {"bytes": "the disk", "words": "split and a dictionary", "bpe": "encode_batch_fast"}
CHUNK = 1 << 22


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--cases", default="bytes,words,bpe")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--folder", help="where shards go, for as long as they are measured")
    parser.add_argument("--peer-bytes", type=int, default=100_000_000, help="of the text, for peers of one speed")
    parser.add_argument("--in-turns", action="store_true", help="only BPE and its peer, in turns")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_turns:
        print(in_turns(options))
        return
    if options.one:
        print(json.dumps(measured(options)))
        return
    rows = []
    for case in options.cases.split(","):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            flags = ["--workers", str(options.workers)] if options.workers else []
            flags += ["--peer-bytes", str(options.peer_bytes), "--folder", folder, "--one", case]
            command = [sys.executable, __file__, options.path, *flags]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(table(rows))


def table(rows: list[dict[str, Any]]) -> str:
    head = "| tokens | MB | s | CPU s | MB/s | tokenising MB/s | peak MB | peer | its MB/s | ratio | a CPU s |\n"
    lines = [head + "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |"]
    for row in rows:
        whole = f"{row['mb']:,.0f} | {row['seconds']:,.1f} | {row['cpu']:,.1f} | {row['mb'] / row['seconds']:,.1f}"
        peer = f"{PEERS[row['case']]} | {row['peer']:,.1f} | {row['ratio']:.2f} | {row['cpu_ratio']:.2f}"
        lines.append(f"| {row['case']} | {whole} | {row['rate']:,.1f} | {row['peak']:,} | {peer} |")
    return "\n".join(lines)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    from regard.core.progress import Progress, watching
    from regard.core.workers import Labour
    from regard.data.corpus import prepare

    stages: dict[str, Progress] = {}
    memory = Memory()
    size, cache = Path(options.path).stat().st_size / 1e6, Path(options.folder) / "cache"
    start = time.perf_counter()
    began: dict[str, float] = {}

    def listen(progress: Progress) -> None:
        stages[progress.part] = progress
        began.setdefault(progress.part, time.process_time())

    with watching(listen):
        how = CASES[options.one]
        corpus = prepare(options.path, tokens=options.one, cache=cache, labour=Labour(options.workers), **how)
    seconds, peak = time.perf_counter() - start, memory.peak // 1000
    cpu, children = sum(os.times()[:4]), sum(os.times()[2:4])
    own = size / (time.process_time() - began["tokenising"] + children)
    rate = size / stages["tokenising"].seconds
    written = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) / 1e6
    before = time.process_time()
    peer = {"bytes": disk, "words": words, "bpe": bpe}[options.one](options, corpus.tokenizer, size + written)
    others = min(size, options.peer_bytes / 1e6) / (time.process_time() - before)
    # The disk is asked for all bytes of all passes, tokenising for those of the text.
    ratio = (size + written) / seconds / peer if options.one == "bytes" else rate / peer
    return {
        "case": options.one,
        "mb": size,
        "seconds": seconds,
        "cpu": cpu,
        "rate": rate,
        "peak": peak,
        "peer": peer,
        "ratio": ratio,
        "cpu_ratio": own / others,
        "stages": {part: round(one.seconds, 1) for part, one in stages.items()},
        "tokens": corpus.train.tokens,
        "vocabulary": corpus.tokenizer.vocab_size,
    }


def disk(options: argparse.Namespace, _tokenizer: Any, megabytes: float) -> float:
    """MB a second of reading the text, and writing as much as the shards take."""
    size = Path(options.path).stat().st_size
    copy = Path(options.folder) / "copy"
    start = time.perf_counter()
    with open(options.path, "rb") as source, open(copy, "wb") as out:
        while chunk := source.read(CHUNK):
            left = int((megabytes * 1e6 - size) * len(chunk) / size)
            while left > 0:
                left -= out.write(chunk[:left])
        out.flush()
        os.fsync(out.fileno())
    seconds = time.perf_counter() - start
    shutil.rmtree(copy, ignore_errors=True)
    copy.unlink(missing_ok=True)
    return megabytes / seconds


def words(options: argparse.Namespace, tokenizer: Any, _megabytes: float) -> float:
    """MB a second of Python's own way to look words up."""
    text, size = beginning(options)
    id_of = {word: number for number, word in enumerate(tokenizer.words)}
    start = time.perf_counter()
    for line in text.split("\n"):
        [id_of.get(word, 0) for word in line.split(" ")]
    return size / (time.perf_counter() - start)


def bpe(options: argparse.Namespace, tokenizer: Any, _megabytes: float) -> float:
    """MB a second of the library, in the lists of pieces that it is fastest with."""
    from tokenizers import Tokenizer

    from regard.data.tokenizer.subword import pieces

    library = Tokenizer.from_str(json.dumps(tokenizer.model))
    text, size = beginning(options)
    parts = list(pieces(text, 1 << 13))
    start = time.perf_counter()
    for first in range(0, len(parts), 512):
        library.encode_batch_fast(parts[first : first + 512], add_special_tokens=False)
    return size / (time.perf_counter() - start)


def in_turns(options: argparse.Namespace) -> str:
    """BPE and its peer, thirty megabytes each in turns, with all cores: a machine whose speed changes does so for both.

    With one worker ours is this process and the library's own threads. It goes from text to the array of a shard; the
    peer's ids stay in the library.
    """
    from tokenizers import Tokenizer

    from regard.core.workers import n_cores, open_workers
    from regard.data import tokenising
    from regard.data.shard import batches, in_memory
    from regard.data.tokenizer import save, train_tokenizer
    from regard.data.tokenizer.subword import pieces

    text, _ = beginning(options)
    tokenizer: Any = train_tokenizer("bpe", [text[:8_000_000]], vocab_size=16_384)
    library = Tokenizer.from_str(json.dumps(tokenizer.model))
    spent: dict[str, list[float]] = {"ours": [], "peer": []}
    with tempfile.TemporaryDirectory() as folder, open_workers(options.workers or n_cores()) as workers:
        save(tokenizer, Path(folder) / "tokenizer.json")
        encode = tokenising._Encoder(str(Path(folder) / "tokenizer.json"), tokenizer.hash)
        list(workers.map(encode, batches([(0, text[:4_000_000], True)], tokenizer)))  # everybody has started
        for number, first in enumerate(range(0, len(text) - 30_000_000, 30_000_000)):
            part = [text[start : start + 1_000_000] for start in range(first, first + 30_000_000, 1_000_000)]
            for which in ("ours", "peer") if number % 2 else ("peer", "ours"):
                start = time.perf_counter()
                if which == "ours":
                    writer = in_memory(tokenizer)
                    passages = ((0, piece, place == 29) for place, piece in enumerate(part))
                    for found in workers.map(encode, batches(passages, tokenizer)):
                        writer.add(found[0])
                    writer.shard()
                else:
                    parts = list(pieces("".join(part), 1 << 13))
                    for at in range(0, len(parts), 512):
                        library.encode_batch_fast(parts[at : at + 512], add_special_tokens=False)
                spent[which].append(time.perf_counter() - start)
    ours, peer = (30 * len(spent[which]) / sum(spent[which]) for which in ("ours", "peer"))
    each = sorted(b / a for a, b in zip(spent["ours"], spent["peer"], strict=True))
    return (
        f"bpe {ours:.1f} MB/s, encode_batch_fast {peer:.1f} MB/s, {ours / peer:.2f} ({each[0]:.2f} to {each[-1]:.2f})"
    )


def beginning(options: argparse.Namespace) -> tuple[str, float]:
    with open(options.path, "rb") as file:
        data = file.read(options.peer_bytes)
    return data.decode("utf-8", "ignore"), len(data) / 1e6


class Memory:
    """The largest memory of this process and its children so far, in kB."""

    def __init__(self) -> None:
        self.peak = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, sum(map(self._of, [os.getpid(), *self._children()])))
            time.sleep(0.2)

    def _of(self, process: int) -> int:
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            return 0
        return int(text.partition("\nPss:")[2].split()[0])

    def _children(self) -> list[int]:
        found = []
        for place in Path("/proc/self/task").glob("*/children"):
            try:
                found += map(int, place.read_text(encoding="utf-8").split())
            except OSError:
                continue
        return found


if __name__ == "__main__":
    main()
