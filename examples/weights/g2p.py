"""The network of g2p-en: how words are spoken that no dictionary has."""

from __future__ import annotations

import sys
from pathlib import Path

import regard

WORDS = ["attention", "transformer", "blorptastic", "regard"]


def main(folder: Path) -> None:
    if not (folder / "g2p").exists():
        print(regard.import_run("g2p:", folder / "g2p"))
    run = regard.load(folder / "g2p")
    for word, spoken in zip(WORDS, run.generate(WORDS), strict=True):
        print(f"{word:12} {spoken}")
    view = run.explain(WORDS[0], view="gates")
    (folder / "gates.html").write_text(view.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
