"""Run folders changed by a knowing hand: a value in a JSON file, a bit, a name, and mostly the hashes made again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.storage import manifest

DEEP = "a hundred thousand brackets"
VALUES: list[Any] = [
    DEEP,
    *(
        None,
        -1,
        0,
        1e18,
        2**70,
        True,
        "x",
        "",
        [],
        {},
        [[]],
        "y" * 10_000,
        -0.5,
        ["a"],
        {"kind": "gpt"},
        1e308,
        "pay:x",
    ),
]


def hostile_folders(runs: Sequence[str], count: int, seed: int) -> Iterator[list[list[str]]]:
    """Copies of runs in which a file was changed and, mostly, the manifest made again, and commands that read them."""
    chance = random.Random(seed)
    for number in range(count):
        source = Path(chance.choice([run for run in runs if Path(run).is_dir()]))
        copy = Path("hostile") / f"{number}"
        shutil.copytree(source, copy)
        change(copy, chance)
        run = str(copy)
        verbs = [
            ["show", run],
            ["show", run, "--verify"],
            ["evaluate", run, "--limit", "30"],
            ["generate", run, "the cat", "--max-tokens", "4"],
            ["explain", run, "the cat sat"],
            ["score", run, "the cat"],
            ["train", "--resume", "--out", run, "--budget", "3steps", "--quiet"],
            ["train", "--resume", "auto", "--out", run, "--budget", "3steps", "--quiet"],
            ["export", run, f"hostile/{number}.arpa"],
        ]
        yield chance.sample(verbs, 3)
        shutil.rmtree(copy, ignore_errors=True)


def change(copy: Path, chance: random.Random) -> None:
    files = [file for file in sorted(copy.rglob("*")) if file.is_file() and not file.is_symlink()]
    file = chance.choice(files)
    kind = chance.choices(["json", "flip", "cut", "gone", "folder", "fifo", "swap"], [10, 2, 2, 1, 1, 1, 1])[0]
    if kind == "json":
        known = [one for one in files if one.suffix in (".json", ".jsonl") and one.name != "manifest.json"]
        file = chance.choice(known)
        with contextlib.suppress(ValueError):
            text = json.dumps(mutated(json.loads(file.read_text()), chance))
            file.write_text(text.replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000))
    elif kind in ("flip", "cut"):
        data = bytearray(file.read_bytes())
        if data and kind == "flip":
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data if kind == "flip" else data[: len(data) // 2])
    elif kind == "swap":
        shutil.copyfile(chance.choice([one for one in files if one != file]), file)
    else:
        file.unlink()
        if kind == "folder":
            file.mkdir()
        elif kind == "fifo":
            os.mkfifo(file)
    if chance.random() < 0.8:
        resealed(copy)


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with one place in it replaced, dropped or added to."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = chance.choice(keys)
        value = value.copy()
        if chance.random() < 0.08:
            del value[key]
        else:
            value[key] = mutated(value[key], chance)
        return value
    return chance.choice(VALUES)


def resealed(copy: Path) -> None:
    """Hashes made again, as somebody does who wants the folder to be believed."""
    for listing in sorted(filter(Path.is_file, copy.rglob("manifest.json")), reverse=True):
        with contextlib.suppress(Exception):
            told = json.loads(listing.read_text())
            for name, facts in told["files"].items():
                if not (listing.parent / name).is_file():
                    continue
                data = (listing.parent / name).read_bytes()
                facts["sha256"] = hashlib.sha256(data).hexdigest()
                for key in ("size", "bytes"):
                    if key in facts:
                        facts[key] = len(data)
            listing.write_bytes(manifest.canonical(told))
