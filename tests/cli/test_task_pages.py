"""The commands of the pages on tasks work in their order, on smaller worlds and for fewer steps."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from calling import TINY, call_here

DOCS = Path(__file__).parents[2] / "docs"
SHORT = (*TINY, "--budget", "2steps", "--quiet")
WORLDS = {
    "world:dates": "world:dates?train=30&valid=4",
    "world:translation": "world:translation?train=30&valid=4",
    "world:reviews": "world:reviews?train=30&valid=6",
    "world:ratings": "world:ratings?train=30&valid=6",
    "world:topics": "world:topics?train=30&valid=6",
    "world:tags": "world:tags?train=20&valid=4",
    "world:electricity": "world:electricity?train=21&valid=3",
}


def commands(page: str) -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture
def files(here: Path) -> Path:
    """Small files of every kind that the pages name."""
    english = ["A man sleeps.", "Two dogs run.", "The man runs.", "A dog sleeps.", "Two men sleep.", "The dog runs."]
    german = [
        "Ein Mann schläft.",
        "Zwei Hunde rennen.",
        "Der Mann rennt.",
        "Ein Hund schläft.",
        "Zwei Männer schlafen.",
    ]
    german.append("Der Hund rennt.")
    for name, lines in (("en", english), ("de", german)):
        (here / f"train.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (here / f"val.{name}").write_text("\n".join(lines[:3]) + "\n", encoding="utf-8")
    pairs = [
        f"{left} ({i})\t{right} ({i})\n" for i, (left, right) in enumerate(zip(english * 4, german * 4, strict=True))
    ]
    (here / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    (here / "sources.txt").write_text("A man runs.\n\nTwo dogs sleep.\n", encoding="utf-8")
    reviews = [
        f"{'good' if i % 2 else 'bad'}\ta {'fine' if i % 2 else 'dull'} film , number {i} .\n" for i in range(40)
    ]
    (here / "reviews.tsv").write_text("".join(reviews), encoding="utf-8")
    prices = [
        f"a room with {i} windows{' and a view' if i % 3 else ''}\t{100 + 7.25 * i + i % 3:.2f}\n" for i in range(40)
    ]
    (here / "prices.tsv").write_text("advert\trent\n" + "".join(prices), encoding="utf-8")
    stars = [f"a {'fine' if i % 2 else 'dull'} film , number {i} .\t{i % 5 + 1}\n" for i in range(40)]
    (here / "reviews_stars.tsv").write_text("text\tstars\n" + "".join(stars), encoding="utf-8")
    genres = [[], ["war", "sea"], ["love"], ["sea", "love"]]
    films = [
        (f"film {i} of {'men at sea' if 'sea' in genres[i % 4] else 'two in town'}", genres[i % 4]) for i in range(40)
    ]
    (here / "films.tsv").write_text(
        "text\tgenres\n" + "".join(f"{text}\t{';'.join(one)}\n" for text, one in films), encoding="utf-8"
    )
    (here / "films.jsonl").write_text(
        "".join(json.dumps({"text": text, "labels": one}) + "\n" for text, one in films), encoding="utf-8"
    )
    (here / "texts.txt").write_text("a fine film\na dull one\n", encoding="utf-8")
    word = "{n}\t{w}\t{w}\t{t}\t_\t_\t0\troot\t_\t_\n"
    sentence = word.format(n=1, w="dogs", t="NOUN") + word.format(n=2, w="run", t="VERB") + "\n"
    for name, count in (("train", 4), ("dev", 3)):
        (here / f"{name}.conllu").write_text(sentence * count, encoding="utf-8")
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(24 * 60) * np.timedelta64(3600, "s")
    rows = [f"{time},{20 + 5 * np.sin(i / 4):.3f},{i % 24}\n" for i, time in enumerate(times)]
    (here / "prices.csv").write_text("time,price,load\n" + "".join(rows), encoding="utf-8")
    future = [row.replace(row.split(",")[1], "", 1) for row in rows[-24:]]
    (here / "tomorrow.csv").write_text("time,price,load\n" + "".join([*rows[:-24], *future]), encoding="utf-8")
    days = [
        f"{np.datetime64('2024-01-01') + day},{shop},{region},{size * (20 + day % 7)}\n"
        for day in range(200)
        for shop, region, size in (("a", "north", 1), ("b", "south", 9))
    ]
    (here / "shops.csv").write_text("day,shop,region,sales\n" + "".join(days), encoding="utf-8")
    return here


@pytest.mark.parametrize("page", ["translation.md", "labels.md", "forecasting.md"])
def test_every_command_of_the_page_works_in_its_order(page: str, files: Path):
    found = commands(page)
    assert len(found) > 5
    for line in found:
        line, _, kept = line.partition(" > ")
        line, _, given = line.partition(" < ")
        argv = [WORLDS.get(word, word) for word in shlex.split(line)[1:]]
        stdin = (files / given).read_text(encoding="utf-8") if given else ""
        outcome = call_here(*argv, *(SHORT if argv[0] == "train" else ()), stdin=stdin)
        assert outcome.code == 0, (line, outcome.err)
        assert outcome.out, line
        if kept:
            assert outcome.out.count("\n") == stdin.count("\n")
