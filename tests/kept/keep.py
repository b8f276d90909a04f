"""Keeps a few runs of today's format beside those of earlier ones, before the format changes.

    python tests/kept/keep.py second

Each is trained for twenty steps, or fitted, on the small files of `first`; scores.json holds what it scores.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import regard

HERE = Path(__file__).parent
DATA = HERE / "first"
# A model that learns by steps or is fitted, of each way to keep numbers: tensors, a table, text, a linear half.
KEPT = {
    "gru": "text.txt",
    "ngram": "text.txt",
    "cloze": "text.txt",
    "bahdanau": "pairs.tsv",
    "linear": "labelled.tsv",
    "tagger": "tagged.conll",
    "crf": "tagged.conll",
    "dlinear": "series.csv",
}
GOES_ON = "gru"  # whose checkpoint is kept too


def main() -> None:
    folder = HERE / sys.argv[1]
    folder.mkdir()
    os.chdir(DATA)
    scores = {}
    for name, data in KEPT.items():
        budget = {} if name in ("ngram", "cloze", "linear", "crf", "dlinear") else {"budget": "20steps"}
        run = regard.train(name, data, size="tiny", seed=3, out=folder / name, quiet=True, **budget)
        scores[name] = {"data": data, "scores": numbers(run.evaluate(data).scores)}
        (folder / name / ".lock").unlink(missing_ok=True)
        if name != GOES_ON:
            shutil.rmtree(folder / name / "checkpoints")
        print(name)
    (folder / "scores.json").write_text(json.dumps(scores, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def numbers(scores: dict[str, object]) -> dict[str, float]:
    """What is no measure of time."""
    return {key: value for key, value in scores.items() if isinstance(value, float) and "second" not in key}


if __name__ == "__main__":
    main()
