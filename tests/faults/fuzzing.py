"""Fuzzing: commands made of the real flags, so that most pass the parser, and run folders changed by a knowing hand.

    python tests/faults/fuzzing.py commands 10000 --seed 1
    python tests/faults/fuzzing.py folders 2000

A command may succeed or fail in one line with a documented exit code, within its time. Anything else is a finding and
is printed. Commands run in forked children, some at a time, so that importing torch is paid once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz_grammar import Grammar, Ground
from hostile_folders import hostile_folders

CODES = (0, 2, 3, 4, 5, 6, 7, 75)
LIMIT, TOGETHER = 60, 20  # seconds for a command; commands in a child


def call(words: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in this process."""
    from regard.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"the cat sat\n"), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 1
    return code, out.getvalue(), err.getvalue()


def wrong(verb: str, code: int, out: str, err: str) -> str:
    """What is wrong with an outcome, or nothing. What a model writes into a pipe is its own, byte for byte."""
    if code not in CODES:
        return f"exit {code}"
    for mark in ("Traceback", "a bug of regard", "Error:"):
        if mark in err or mark in out:
            return mark
    if code and not err.strip():
        return "no word of the failure"
    if code and len([line for line in err.split("\n") if line.startswith("regard: error")]) != 1 and code != 75:
        return "not one line"
    told = err if verb == "generate" else out + err
    if "\x1b]" in told or "\x07" in told:
        return "an escape reaches the terminal"
    return ""


def tried(words: list[str]) -> dict[str, Any]:
    """One command under its time limit, as a record."""

    def late(*_: object) -> None:
        raise TimeoutError("too long")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    begin = time.monotonic()
    try:
        code, out, err = call(words)
        finding = wrong(words[0], code, out, err)
    except BaseException:
        code, err, finding = -1, traceback.format_exc(), "an exception"
    finally:
        signal.alarm(0)
    return {"words": words, "code": code, "finding": finding, "err": err[-600:], "seconds": time.monotonic() - begin}


def in_children(cases: Iterator[list[list[str]]]) -> Iterator[dict[str, Any]]:
    """Every case, a list of commands, in a forked child; what it found comes back by a file."""
    for case in cases:
        with tempfile.NamedTemporaryFile("r+") as told:
            child = os.fork()
            if child == 0:
                with open(told.name, "a") as stream:
                    for words in case:
                        print(json.dumps(tried(words)), file=stream, flush=True)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            lines = [json.loads(line) for line in told.read().splitlines()]
        yield from lines
        if len(lines) < len(case):
            yield {
                "words": case[len(lines)],
                "code": status,
                "finding": f"the process died ({status})",
                "err": "",
                "seconds": 0,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["commands", "folders"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.chdir(tempfile.mkdtemp(prefix="regard-fuzz-"))
    ground = Ground(Path.cwd())
    ground.train(call)
    if given.what == "commands":
        grammar = Grammar(ground, given.seed)
        batches = ([grammar.command() for _ in range(TOGETHER)] for _ in range(-(-given.count // TOGETHER)))
    else:
        batches = hostile_folders(ground.runs, given.count, given.seed)
    codes, slowest, findings = Counter[int](), 0.0, 0
    for record in in_children(batches):
        codes[record["code"]] += 1
        slowest = max(slowest, record["seconds"])
        if record["finding"]:
            findings += 1
            print(json.dumps(record), flush=True)
    print(
        f"{sum(codes.values())} commands, exit codes {dict(sorted(codes.items()))}, slowest {slowest:.1f} s, "
        f"{findings} findings"
    )
    shutil.rmtree(Path.cwd(), ignore_errors=True)


if __name__ == "__main__":
    main()
