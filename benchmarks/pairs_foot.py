"""What the fitted models of pairs, captions and masked text reach on held-out data, and how long a fit takes.

    python benchmarks/pairs_foot.py DATA_FOLDER [--only multi30k,emoji,masked] [--budget 2m]

DATA_FOLDER holds multi30k/, emoji_captions/ and tinyshakespeare/. Seconds are those of the fit with its choices on the
held-out part and its scores; reading and tokenising are left out. BERT, at its default size, is trained for `budget` on
the same text. One thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import regard


def trained(folder: Path, model: str, data: str, **settings: Any) -> regard.Run:
    return regard.train(model, data, out=folder / f"{model}-run", quiet=True, **settings)


def row(data: str, model: str, run: regard.Run, options: str, scores: dict[str, Any], names: tuple[str, ...]) -> None:
    """One line of the table."""
    line = (run.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    seconds, loss = (float(json.loads(line).get(key, "nan")) for key in ("seconds", "valid_loss"))
    told = ", ".join(f"{name} {scores[name]:.4g}" for name in names)
    print(f"| {data} | {model}{options} | {told} | {loss:.3f} | {seconds:.0f} |", flush=True)


def unpacked(source: Path, folder: Path) -> Path:
    found = folder / source.name.removesuffix(".gz")
    found.write_bytes(gzip.decompress(source.read_bytes()))
    return found


def multi30k(place: Path, folder: Path, _budget: str) -> None:
    files = {
        name: unpacked(place / f"multi30k/{name}.gz", folder) for name in ("train.de", "train.en", "val.de", "val.en")
    }
    data = f"{files['train.de']},{files['train.en']}"
    valid = f"{files['val.de']},{files['val.en']}"
    for model in ("nearest", "ibm1"):
        run = trained(folder, model, data, valid=valid)
        for told, options in (("", {}), (", beam 5", {"beam": 5, "length_penalty": "gnmt"})):
            scores = dict(run.evaluate(**options).scores)
            row("Multi30k de-en", model, run, told, scores, ("bleu", "chrf"))


def emoji(place: Path, folder: Path, _budget: str) -> None:
    where = place / "emoji_captions"
    run = trained(folder, "nearest_picture", str(where / "train.images.npz"), valid=str(where / "valid.images.npz"))
    row("emoji", "nearest_picture", run, "", dict(run.evaluate().scores), ("exact_match", "bleu", "chrf"))


def masked(place: Path, folder: Path, budget: str) -> None:
    text = unpacked(place / "tinyshakespeare/input.txt.gz", folder)
    for model, more in (("cloze", {}), ("bert", {"budget": budget})):
        run = trained(folder, model, str(text), task="masked", **more)
        scores = dict(run.evaluate().scores)
        row("Shakespeare, masked", model, run, f" ({budget})" if more else "", scores, ("accuracy", "loss"))


PARTS: dict[str, Callable[[Path, Path, str], None]] = {"multi30k": multi30k, "emoji": emoji, "masked": masked}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--budget", default="2m")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | model | held-out scores | loss, nats a token | fit s |")
    print("| --- " * 5 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            PARTS[name](options.folder, Path(folder), options.budget)


if __name__ == "__main__":
    main()
