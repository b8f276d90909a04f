"""A Backpack beside the GPT with the same context stack: equal tokens of the classic books, then similarity of words.

    python benchmarks/backpack.py --data DIR --device cuda --out backpack.jsonl
    python benchmarks/backpack.py --data DIR --device cuda --models backpack train.lr=2e-3 --out backpack.jsonl
    python benchmarks/backpack.py table backpack.jsonl

DIR holds classic_books and word_similarity. Each training is one line: perplexity on the validation books, seconds and
what a step takes, and the rank correlation of cosines with what people say of pairs of words: of rows of the embedding,
and of the best of the senses. Which sense is best is told by SimLex-999 and taken for the other sets, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import regard
from regard.evaluation.regression import regression_scores
from regard.layers.senses import SenseVectors
from regard.run.settings import parse_value

SETS = {"SimLex": "EN-SIMLEX-999.tsv", "WS-353 sim": "EN-WS-353-SIM.tsv", "WS-353 rel": "EN-WS-353-REL.tsv"}
CHOSEN_BY = "SimLex"
DATA = {"tokens": "words", "documents": "file", "vocab_size": 20_000}
STEP = {"batch_size": 64, "length": 256, "dropout": 0.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="settings, or `table` and a file of lines")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--models", default="gpt,backpack")
    parser.add_argument("--size", default="base")
    parser.add_argument("--budget", default="24Mtokens", help="one pass over the books is about 24 million words")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", help="folder where tokens are kept for the next call")
    parser.add_argument("--out", type=Path, default=Path("backpack.jsonl"))
    given = parser.parse_intermixed_args()
    if given.words[:1] == ["table"]:
        print(table([json.loads(line) for line in Path(given.words[1]).read_text().splitlines()]))
        return
    for model in given.models.split(","):
        line = measured(model, given.words, given)
        with open(given.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def measured(model: str, settings: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """One training and all that is asked of it."""
    pairs = (word.partition("=") for word in settings)
    chosen = {key.partition(".")[2]: parse_value(value) for key, _, value in pairs}
    books = given.data / "classic_books"
    cached = {"cache": given.cache} if given.cache else {}
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        run = regard.train(
            model,
            books / "train.txt.xz",
            size=given.size,
            valid=str(books / "valid.txt.xz"),
            budget=given.budget,
            device=given.device,
            seed=given.seed,
            out=Path(folder) / "run",
            sample_every=0,
            quiet=True,
            **DATA | STEP | cached | chosen,
        )
        seconds = time.monotonic() - start
        lines = [json.loads(line) for line in (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()]
        report = run.evaluate()
    speeds = sorted(line["tokens_per_second"] for line in lines if line.get("tokens_per_second"))
    tokens = STEP["batch_size"] * STEP["length"]
    return {
        "model": model,
        "settings": " ".join(settings),
        "seed": given.seed,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "budget": given.budget,
        "steps": max(line["step"] for line in lines),
        "seconds": round(seconds, 1),
        "step_ms": round(1000 * tokens / speeds[len(speeds) // 2], 2) if speeds else None,
        "loss": round(report.scores["loss"], 4),
        "perplexity": round(report.scores["perplexity"], 2),
        "rate": run.config["train"]["lr"],
    } | similarity(run, given.data / "word_similarity")


@torch.no_grad()
def similarity(run: Any, folder: Path) -> dict[str, Any]:
    """Rank correlations of the embedding's rows and of every sense, on the pairs whose words are both known."""
    table = run.model.embedding.token_to_vector.weight.detach().float()
    spaces = {"embedding": table}
    head = run.model.head.weight.detach().float()
    if head.data_ptr() != table.data_ptr():
        spaces["head"] = head
    for part in run.model.modules():
        if isinstance(part, SenseVectors):
            senses = torch.cat([part(rows[None])[0] for rows in table.split(1000)])  # (V, C, D)
            spaces |= {f"sense {number}": vectors for number, vectors in enumerate(senses.unbind(1))}
    row_of = {word: row for row, word in enumerate(words(run))}
    found: dict[str, Any] = {}
    for name, file in SETS.items():
        pairs = [line.split("\t") for line in (folder / file).read_text(encoding="utf-8").splitlines()]
        known = [(row_of[a], row_of[b], float(score)) for a, b, score in pairs if a in row_of and b in row_of]
        truth = np.array([score for *_, score in known])
        found[f"{name} pairs"] = len(known)
        for space, vectors in spaces.items():
            told = cosines(vectors, known)
            found[f"{name} {space}"] = round(regression_scores(truth, told)["spearman"], 4)
    return found


def cosines(vectors: Tensor, pairs: list[tuple[int, int, float]]) -> np.ndarray:
    a, b = (vectors[torch.tensor([pair[side] for pair in pairs], device=vectors.device)] for side in (0, 1))
    return torch.nn.functional.cosine_similarity(a, b).cpu().double().numpy()


def words(run: Any) -> list[str]:
    """What each row of the table is of."""
    tokenizer = run.processor.tokenizer
    return [tokenizer.decode([row]).strip() for row in range(run.model.vocab_size)]


def table(lines: list[dict[str, Any]]) -> str:
    """A row for each training; of a Backpack the sense that is best by SimLex."""
    head = ["model", "settings", "seed", "parameters", "steps", "ms a step", "perplexity"]
    head += [f"{name}: {what}" for name in SETS for what in ("embedding", "head", "best sense")]
    rows = [head, ["---"] * len(head)]
    for line in lines:
        senses = [key.removeprefix(f"{CHOSEN_BY} ") for key in line if key.startswith(f"{CHOSEN_BY} sense ")]
        best = max(senses, key=lambda sense: line[f"{CHOSEN_BY} {sense}"], default="")
        row = [line["model"], line["settings"], line["seed"], f"{line['parameters']:,}", line["steps"]]
        row += [line["step_ms"], line["perplexity"]]
        for name in SETS:
            row += [line.get(f"{name} {space}", "") for space in ("embedding", "head", best)]
        rows.append([str(cell) for cell in row])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    main()
