"""Counting beside KenLM: building, file, opening it, scoring and whole distributions of a 5-gram over words.

Run on a text of one's own with `regard bench ngram --data FILE`; without one on a made-up text of two million words.
The last tenth of its lines is held out, to be scored.
Most rows stand beside the figure to be reached, scoring beside the `kenlm` module and building beside its `lmplz`
where they are installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.bench.race import Row, installed, race
from regard.errors import ResourceError
from regard.models.ngram import NgramConfig, NgramModel
from regard.storage.temporary import temporary_folder

ORDER = 5
_BUILD = """
import json, re, sys, time
from pathlib import Path
import regard
from regard.bench.ngram import build
start = time.perf_counter()
facts = build(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "quantised")
facts["seconds"] = time.perf_counter() - start
facts["peak"] = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
print(json.dumps(facts))
"""


def ngram(repeats: int, data: str | None = None) -> list[Row]:
    """Every row, on one text."""
    with temporary_folder(None, "regard-bench-") as place:
        text, held = parted(place, made_up() if data is None else plain(data))
        built = [_built(text, place / "model", "exact") for _ in range(max(1, repeats // 2))]
        facts = sorted(built, key=lambda one: one["seconds"])[len(built) // 2]
        small = _built(text, place / "small", "quantised")
        model = opened(place / "model", facts)
        rows = [_less("build, text to file", facts["seconds"], 6.0, "s")]
        rows += _beside_lmplz(text, facts["seconds"])
        rows += [
            _less("peak memory of the build", facts["peak"], 600.0, "MB"),
            _less("file", (place / "model").stat().st_size / 1e6, 80.0, "MB"),
            _less("file, quantised", (place / "small").stat().st_size / 1e6, 40.0, "MB"),
            _less("open_file alone", _open_seconds(place / "model", facts) * 1e3, 50.0, "ms"),
            _less("open_file alone, quantised", _open_seconds(place / "small", small) * 1e3, 50.0, "ms"),
        ]
        return rows + _speeds(model, text, held, repeats)


def build(text: Path, out: Path, is_quantised: bool) -> dict[str, Any]:
    """Read a text, a sentence a line, count it and write the model file; what is needed to open it again."""
    from regard.data.shard import make_shard
    from regard.data.source import read_documents
    from regard.data.tokenizer import train_tokenizer
    from regard.ngram.table import quantise
    from regard.storage import manifest, tensors

    lines = list(read_documents(str(text), documents="line"))
    tokenizer = train_tokenizer("words", lines)
    ids = make_shard(lines, tokenizer).ids
    del lines
    model = NgramConfig(tokenizer.vocab_size, ORDER, quantise=is_quantised).build()
    model.estimate(model.count(ids))
    if is_quantised:
        quantise(model.table)
    out.unlink(missing_ok=True)
    manifest.write_file(out, tensors.chunks(model.stored()))
    return {"vocab_size": tokenizer.vocab_size, "tokens": len(ids), "quantise": is_quantised}


def opened(path: Path, facts: dict[str, Any]) -> NgramModel:
    model = NgramConfig(facts["vocab_size"], ORDER, quantise=facts["quantise"]).build()
    model.open_file(path)
    return model


def parted(place: Path, lines: list[str]) -> tuple[Path, list[str]]:
    """A file of all lines but the last tenth, and those."""
    text, cut = place / "text.txt", len(lines) - len(lines) // 10
    text.write_text("".join(f"{line}\n" for line in lines[:cut]), encoding="utf-8")
    return text, lines[cut:]


def plain(data: str) -> list[str]:
    """The lines of a text, without KenLM's reserved words."""
    from regard.data.source import read_documents

    return [line.replace("<unk>", "_unk_") for line in read_documents(data, documents="line")]


def made_up(n_words: int = 2_000_000, seed: int = 0) -> list[str]:
    """Sentences of words by Zipf's law, in which half of the words follow from the one before."""
    chance = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 30_001) ** 1.05
    words = chance.choice(30_000, n_words, p=weights / weights.sum())
    follows = np.flatnonzero(chance.random(n_words - 1) < 0.5) + 1
    words[follows] = (words[follows - 1] * 7 + chance.integers(3, size=len(follows))) % 30_000
    return [" ".join(f"w{word}" for word in line) for line in np.split(words, np.arange(20, n_words, 20))]


def _less(what: str, ours: float, limit: float, unit: str) -> Row:
    return Row(f"ngram {what}, beside {limit:g} {unit}", ours, limit, limit / ours, 1.0, unit)


def _built(text: Path, out: Path, kind: str) -> dict[str, Any]:
    """Build in a fresh process, so that its peak of memory is its own."""
    command = [sys.executable, "-c", _BUILD, str(text), str(out), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ResourceError(f"the build failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def _beside_lmplz(text: Path, seconds: float) -> list[Row]:
    program = shutil.which("lmplz")
    if program is None:
        return []
    start = time.perf_counter()
    with open(text, "rb") as source, open(text.with_suffix(".arpa"), "wb") as out:
        subprocess.run(
            [program, "-o", str(ORDER), "-S", "1G"], stdin=source, stdout=out, stderr=subprocess.DEVNULL, check=True
        )
    peer = time.perf_counter() - start
    return [Row("ngram build, text to file, beside lmplz to ARPA", seconds, peer, peer / seconds, None, "s")]


def _open_seconds(path: Path, facts: dict[str, Any]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        opened(path, facts)
        times.append(time.perf_counter() - start)
    return sorted(times)[2]


@torch.no_grad()
def _speeds(model: NgramModel, text: Path, held: list[str], repeats: int) -> list[Row]:
    from regard.data.shard import make_shard
    from regard.data.tokenizer import train_tokenizer

    tokenizer = train_tokenizer("words", text.read_text(encoding="utf-8").split("\n")[:-1])
    ids = torch.from_numpy(np.concatenate([[tokenizer.eos_id], make_shard(held, tokenizer).ids.astype(np.int64)]))[None]
    state = model.init_state(1)
    ours, peer, ratio = race(lambda: model.log_probs(ids, state), _kenlm(text, held), repeats)
    count = ids.shape[1] - 1
    rows = [_more("scoring held-out text", count / ours, 3e6)]
    if peer is not None:
        rows.append(Row("ngram scoring, beside kenlm by sentence", count / ours, count / peer, ratio, None, "tokens/s"))

    def steps(n: int = 500) -> None:
        now = model.init_state(1)
        for t in range(n):
            _, now = model(ids[:, t : t + 1], now)

    rows.append(_more("distributions, one step after the other", 500 / race(steps, None, repeats)[0], 2000))
    batch = ids[:, :400]
    rows.append(_more("distributions of a text", 400 / race(lambda: model(batch, state), None, repeats)[0], 2000))
    return rows


def _more(what: str, ours: float, limit: float) -> Row:
    return Row(f"ngram {what}, beside {limit:,.0f}", ours, limit, ours / limit, 1.0, "tokens/s")


def _kenlm(text: Path, lines: list[str]) -> Any:
    """Scoring by KenLM of the ARPA file that its own estimator left, where both are installed."""
    path = text.with_suffix(".arpa")
    if not installed("kenlm") or not path.exists():
        return None
    import kenlm  # pyright: ignore[reportMissingImports]

    peer = kenlm.Model(str(path))
    return lambda: [peer.score(line) for line in lines]
