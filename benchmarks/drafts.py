"""Generation with a draft beside the same model without: tokens accepted, tokens a read, time a token.

    python benchmarks/drafts.py RUN DRAFT [DRAFT ...] [--prompt FILE] [--counts 2 4 8] [--tokens 200] [--rounds 5]

A draft is a run or ngram. With and without take turns and the least time of each counts, so that a busy machine does
not decide. The prompt is read within the time.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import regard
from regard.decoding.draft import Drafter

WAYS = {"greedy": {"temperature": 0.0}, "drawn": {}, "top-p 0.9": {"top_p": 0.9}}


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(
    run: regard.Run, drafter: Drafter, prompt: str, rounds: int, options: dict[str, Any]
) -> tuple[float, float]:
    """Milliseconds a token with the draft and without."""
    drafted, alone = [], []
    for _ in range(rounds):
        alone.append(seconds(lambda: run.write([prompt], **options)))
        drafted.append(seconds(lambda: run.write([prompt], draft=drafter, **options)))
    return 1000 * min(drafted) / options["max_tokens"], 1000 * min(alone) / options["max_tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("drafts", nargs="+", metavar="DRAFT")
    parser.add_argument("--prompt", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    run = regard.load(args.run, device="cpu")
    prompt = args.prompt.read_text(encoding="utf-8") if args.prompt else ""
    print("| drawing | draft | k | accepted | tokens a read | ms a token | without | faster |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for way, drawing in WAYS.items():
        options = {"max_tokens": args.tokens, "seed": 1, **drawing}
        found = []
        for draft, count in itertools.product(args.drafts, args.counts):
            drafter = run.drafter(draft, count)
            found.append((Path(draft).name, count, drafter.tally, *measure(run, drafter, prompt, args.rounds, options)))
        before = min(alone for *_, alone in found)  # the same work for every draft
        for name, count, tally, least, _ in found:
            print(
                f"| {way} | {name} | {count} | {tally.acceptance or 0:.0%} | {tally.tokens_per_read:.2f} "
                f"| {least:.2f} | {before:.2f} | {before / least:.2f}x |",
                flush=True,
            )


if __name__ == "__main__":
    main()
