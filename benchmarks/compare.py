"""`regard compare` on real data, kept as pages under benchmarks/results.

    python benchmarks/compare.py wikitext-chars --data FOLDER --device cuda --budget 60s --out benchmarks/results

FOLDER holds the sets by the names in SETS; nothing of them is shipped.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markets import KNOWN

import regard
from regard.studies.board import LineBoard
from regard.studies.compare import Comparison
from regard.studies.identity import versions
from regard.studies.report import as_markdown


@dataclass(frozen=True)
class DataSet:
    """Files of a set, the first to train on and the second, if there is one, held out; and settings for every model."""

    files: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] | None = None


SETS = {
    "wikitext-chars": DataSet(("wikitext2/train.txt.gz", "wikitext2/valid.txt.gz"), {"tokens": "chars", "length": 256}),
    "wikitext-bpe": DataSet(
        ("wikitext2/train.txt.gz", "wikitext2/valid.txt.gz"), {"tokens": "bpe", "vocab_size": 4000}
    ),
    "shakespeare": DataSet(("tinyshakespeare/input.txt.gz",), {"tokens": "chars", "length": 256}),
    "multi30k": DataSet(("multi30k/train.en.gz", "multi30k/train.de.gz"), {"vocab_size": 8000}),
    **{
        f"epf-{market}": DataSet((f"epf/{market}.train.csv.gz",), {"valid": "tail:0.2", "known": known})
        for market, known in KNOWN.items()
    },
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("name", choices=list(SETS))
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--device", default="cpu")
    options.add_argument("--budget", default="1m")
    options.add_argument("--seeds", type=int)
    options.add_argument("--parameters", type=int)
    options.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options.add_argument("--commit", default="")
    given = options.parse_args()
    known = SETS[given.name]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(_unpacked(given.data / name, Path(folder))) for name in known.files]
        settings = dict(known.settings)
        if given.name.startswith("multi30k"):
            settings["target"] = paths[1]
        elif len(paths) > 1:
            settings["valid"] = paths[1]
        found = regard.compare(
            known.models,
            paths[0],
            budget=given.budget,
            seeds=given.seeds,
            parameters=given.parameters,
            out=Path(folder) / "comparison",
            board=LineBoard(None),
            device=given.device,
            **settings,
        )
        given.out.mkdir(parents=True, exist_ok=True)
        name = f"compare-{given.name}-{'gpu' if given.device.startswith('cuda') else 'cpu'}"
        (given.out / f"{name}.md").write_text(_page(found, given))
        shutil.copy(Path(folder) / "comparison" / "report.html", given.out / f"{name}.html")
    print(_page(found, given))


def _page(found: Comparison, given: argparse.Namespace) -> str:
    limits = f" --parameters {given.parameters}" if given.parameters else ""
    seeds = f" --seeds {given.seeds}" if given.seeds else ""
    command = (
        f"python benchmarks/compare.py {given.name} --device {given.device} --budget {given.budget}{limits}{seeds}"
    )
    about = ", ".join(f"{name} {value}" for name, value in versions().items())
    table = as_markdown(found).replace(str(found.out.parent), "")
    facts = ", ".join(f"{name} {value}" for name, value in found.facts.items())
    commit = given.commit or _commit()
    return f"# {given.name}\n\n`{command}` at {commit}; {about}. Data: {facts}.\n\n{table}"


def _unpacked(path: Path, folder: Path) -> Path:
    """The file itself, unpacked where it is compressed; a series is read as it is."""
    if path.suffix != ".gz" or ".csv" in path.suffixes:
        return path
    target = folder / path.with_suffix("").name
    with gzip.open(path) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    return target


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()


if __name__ == "__main__":
    main()
