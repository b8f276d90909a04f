"""Every ladder on real data in one run: the foot, the network by default and tuned, and the peer, by data set.

    python benchmarks/evidence.py run --data DIR --out FOLDER --device cuda --jobs 14 --seconds 480 [--only ewt,NP]
    python benchmarks/evidence.py page FOLDER

Each line of JOBS is a benchmark of this folder; they share the machine, `--jobs` at a time, and what each printed is
kept in FOLDER. A training gets the part of `--seconds` that its line says. `page` puts together what is there.
Trainings at three seeds leave their runs there, of which together.py makes one. Validation parts only; what is chosen
on them (the best weights of a training, settings of tuned rows) is a little too good.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markets import KNOWN

HERE = Path(__file__).parent
AWD = (
    "model.d_model=400 model.d_hidden=1150 model.n_layers=3 model.norm=none model.residual=false model.tied=true "
    "model.locked=true model.input_dropout=0.65 model.dropout=0.2 model.output_dropout=0.4 model.row_dropout=0.1 "
    "model.weight_dropout=0.5 train.batch_size=80 train.length=70 train.lr=2e-3 train.min_lr=0.01 "
    "train.weight_decay=0.01 train.clip=0.25 train.ar=2.0 train.tar=0.6 train.ema=0.999 train.sample_every=0"
)
PAIRS = "train.weight_decay=0.01 train.ema=0.999 train.label_smoothing=0.1"
TRANSFORMER = f"{PAIRS} train.batch_size=128 data.vocab_size=10000 model.dropout=0.2"
BAHDANAU = f"{PAIRS} train.batch_size=256 data.vocab_size=6000 model.d_model=512 model.dropout=0.5 train.lr=1.4e-3"


@dataclass(frozen=True)
class Job:
    """name: its file. share: of the seconds, for a training's budget. command: after `python benchmarks/`."""

    name: str
    command: str
    share: float = 0.0


def tasks(name: str, data: str, model: str, settings: str = "", share: float = 0.85, more: str = "") -> Job:
    """One training by tasks.py; its budget is a share of the seconds."""
    command = f"tasks.py {data} --data {{data}} --device {{device}} --model {model} --budget {{budget}}s {more}"
    return Job(name, f"{command} {settings}", share)


def seeds(name: str, data: str, model: str, settings: str = "", share: float = 0.85, more: str = "") -> list[Job]:
    """The same at three seeds, whose runs are kept for together.py."""
    place = re.sub(r"\W+", "-", name)
    each = [f"{more} --seed {seed} --keep {{out}}/{place}-{seed}" for seed in range(3)]
    return [tasks(f"{name}, seed {seed}", data, model, settings, share, own) for seed, own in enumerate(each)]


# The longest first, so that the machine is not waiting for them at the end.
JOBS = [
    tasks("wikitext2 tuned: awd-lstm", "wikitext2", "lstm", AWD, 0.9),
    *seeds("multi30k tuned: transformer", "multi30k", "transformer", TRANSFORMER, 0.85, "--beam"),
    *seeds("multi30k tuned: bahdanau", "multi30k", "bahdanau", BAHDANAU, 0.85, "--beam"),
    Job("movie_reviews", "labelled.py {data} --only movie_reviews --seeds 1 --budget 60s --jobs 5 --out {out}/m.jsonl"),
    Job("trec", "labelled.py {data} --only trec --seeds 1 --budget 60s --jobs 3 --out {out}/trec.jsonl"),
    Job("sst2", "labelled.py {data} --only sst2 --budget 60s --jobs 2 --out {out}/sst2.jsonl"),
    Job("ewt", "tagged_foot.py {data} --only ewt --steps 2400 --seeds 3"),
    *(Job(market, f"series_foot.py {{data}}/epf --only {market} --runs {{out}}/epf --train 4000steps --every 56d")
      for market in KNOWN),
    Job("backpack", "backpack.py --data {data} --device {device} --models gpt,backpack --out {out}/backpack.jsonl"),
    Job("wnut17", "tagged_foot.py {data} --only wnut17 --steps 800 --seeds 3"),
    *seeds("multi30k default: transformer", "multi30k", "transformer", "", 0.25, "--beam"),
    *seeds("multi30k default: bahdanau", "multi30k", "bahdanau", "", 0.25, "--beam"),
    *seeds("wikitext2 default: lstm", "wikitext2", "lstm", "", 0.25),
    *seeds("wikitext2 default: gpt", "wikitext2", "gpt", "", 0.25),
    tasks("wikitext2 foot: ngram", "wikitext2", "ngram", "model.order=5", 0.25),
    tasks("multi30k foot: ibm1", "multi30k", "ibm1", "", 0.25),
    tasks("multi30k foot: nearest", "multi30k", "nearest", "", 0.25),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "page"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--out", type=Path, default=Path("evidence"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--only", help="jobs whose name begins with one of these, with commas between")
    given = parser.parse_args()
    if given.verb == "page":
        print(page(given.folder))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    begins = tuple(given.only.split(",")) if given.only else ("",)
    start = time.monotonic()
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda job: made(job, given, start), [job for job in JOBS if job.name.startswith(begins)]))


def made(job: Job, given: argparse.Namespace, start: float) -> None:
    """Run one job unless the time is over; what it prints is kept, also where it is cut off."""
    left = given.seconds - (time.monotonic() - start)
    if left < 20:
        return
    budget = int(min(job.share * given.seconds, left - 15))
    filled = job.command.format(data=given.data, out=given.out, device=given.device, budget=budget)
    script, *words = filled.split()
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with open(given.out / f"{job.name}.txt", "w", encoding="utf-8") as file:
        command = [sys.executable, str(HERE / script), *words]
        try:
            code = subprocess.run(
                command, stdout=file, stderr=subprocess.STDOUT, timeout=left, env=environment
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
    print(f"{job.name}: {'cut off' if code < 0 else code}, {time.monotonic() - start:.0f} s", flush=True)


def page(folder: Path) -> str:
    """Tables by kind, of the files that are there: rows as they were printed, lines of JSON as rows."""
    rows: dict[str, list[str]] = {}
    for job in JOBS:
        file = folder / f"{job.name}.txt"
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            if line.startswith("| ") and not line.startswith("| ---"):
                rows.setdefault(job.command.split()[0], []).append(line)
            elif line.startswith("{"):
                rows.setdefault(job.command.split()[0], []).append(told(job.name, json.loads(line)))
    return "\n\n".join(f"## {script}\n\n" + "\n".join(dict.fromkeys(lines)) for script, lines in rows.items())


def told(name: str, line: dict[str, Any]) -> str:
    """A training of tasks.py or backpack.py as a row."""
    if "scores" not in line:
        senses = [value for key, value in line.items() if key.startswith("SimLex sense")]
        cells = [name, line["model"], line["steps"], line["seconds"], f"perplexity {line['perplexity']}"]
        cells += [f"SimLex {line['SimLex embedding']}" + (f", best sense {max(senses)}" if senses else "")]
    else:
        scores = {way: {k: v for k, v in found.items() if k in SHOWN} for way, found in line["scores"].items()}
        words = "; ".join(
            f"{way or 'as it is'}: " + ", ".join(f"{key} {value:.2f}" for key, value in found.items())
            for way, found in scores.items()
        )
        cells = [name, line["model"], line["steps"], line["seconds"], words]
    return "| " + " | ".join(map(str, cells)) + " |"


SHOWN = ("perplexity", "bleu", "chrf")

if __name__ == "__main__":
    main()
