"""Which test runs the blocks of a page: one that is the page's own, or the one here, with the files that it names."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from calling import TEXT, TINY, done

# Pages whose blocks have a test of their own, where more is asked of them than that they run.
OWN = {
    "README.md": "tests/cli/test_readme.py",
    "CONTRIBUTING.md": "tests/cli/test_plugin.py",
    "examples/plugin/README.md": "tests/cli/test_plugin.py",
    "examples/weights/README.md": "tests/cli/test_weight_examples.py",
    "docs/captions.md": "tests/cli/test_captions_page.py",
    "docs/compare.md": "tests/cli/test_compare_command.py",
    "docs/data.md": "tests/cli/test_data_page.py",
    "docs/forecasting.md": "tests/cli/test_task_pages.py",
    "docs/inside.md": "tests/cli/test_inside_page.py",
    "docs/labels.md": "tests/cli/test_task_pages.py",
    "docs/lectures/*.md": "tests/unit/lectures",
    "docs/models/*.md": "tests/pages/test_model_pages.py",
    "docs/masked.md": "tests/cli/test_masked_page.py",
    "docs/predict.md": "tests/cli/test_predict.py",
    "docs/python.md": "tests/cli/test_python_page.py",
    "docs/reproduce.md": "tests/cli/test_compare_command.py",
    "docs/sklearn.md": "tests/cli/test_sklearn_page.py",
    "docs/translation.md": "tests/cli/test_task_pages.py",
    "docs/weights.md": "tests/cli/test_weights_page.py",
}
# Commands that are read and not run here: what they do is run by tests of their own.
READ = ("check", "lab", "serve", "bench", "import", "lecture", "reproduce")
# Other programs than regard, whose lines are looked at in other ways or run elsewhere.
OTHERS = {
    "python -m venv": ".ci/run does it",
    "python -m pytest": ".ci/run does it",
    "pip install": "the extras are looked for in pyproject.toml",
    "mkdocs build": "the site that the tests here look at is built by it",
    ".ci/full": "what runs the tests",
    "export SOURCE_DATE_EPOCH": "tests/release/test_build.py builds twice with it",
    "python -m hatchling": "tests/release/test_build.py does it",
    "for version in 3.11": "it asks an index for torch; tests/release/test_build.py looks into the wheel",
    "python docs/sbom.py": "tests/release/test_sbom.py does it",
    "sha256sum": "a program of the system",
    "curl": "tests/cli/test_serve.py asks the same over HTTP",
    "ray start": "tests/unit/studies asks a cluster of one machine",
    "torchrun": "tests/unit/training starts the same ranks",
}


@dataclass(frozen=True)
class Fixture:
    """What a page finds when its blocks run.

    instead: words that are others here. before: Python in front of that of the page, where another test does not run
    it. read: what stands in commands that are too large for here, which are read and not run.
    """

    files: Callable[[Path], None]
    instead: dict[str, str] = field(default_factory=dict)
    before: str = ""
    runs_python: bool = True
    read: tuple[str, ...] = ()


def own_test(page: str) -> str | None:
    """The test of its own that a page has."""
    return next((test for pattern, test in OWN.items() if fnmatch(page, pattern)), None)


def fixture_of(page: str) -> Fixture | None:
    """The fixture of a page that has no test of its own."""
    return next((fixture for pattern, fixture in HERE.items() if fnmatch(page, pattern)), None)


def plain(here: Path) -> None:
    """A text and a table."""
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    rows = [f"it is {word} {n},{word}\n" for n in range(40) for word in ("good", "bad")]
    (here / "my.csv").write_text("".join(["text,label\n", *rows]), encoding="utf-8")


def with_runs(here: Path) -> None:
    plain(here)
    done("train", "my.txt", "--model", "gpt", *TINY, "--budget", "4steps", "--quiet", "--out", "runs/mine")
    for name in ("large", "small"):
        shutil.copytree("runs/mine", f"runs/{name}")
    (here / "prompts.txt").write_text("the cat\nthe dog\n", encoding="utf-8")
    shutil.copy("my.csv", "reviews.csv")


def counted(here: Path) -> None:
    plain(here)
    (here / "big.txt").write_text(TEXT, encoding="utf-8")
    (here / "held-out.txt").write_text(TEXT[:2000], encoding="utf-8")
    done("train", "my.txt", "--model", "ngram", "--set", "data.tokens=words", "--quiet", "--out", "runs/counted")


def recipes(here: Path) -> None:
    with_runs(here)
    pairs = [("A dog runs.", "Ein Hund rennt."), ("Two men sleep.", "Zwei Männer schlafen.")] * 8
    for part, rows in (("train", pairs), ("val", pairs[:3])):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{row[side]}\n" for row in rows)
            (here / f"{part}.{language}").write_text(text, encoding="utf-8")
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(24 * 60) * np.timedelta64(3600, "s")
    hours = [f"{time},{20 + 5 * np.sin(i / 4):.3f},{i % 24}\n" for i, time in enumerate(times)]
    (here / "prices.csv").write_text("time,price,load\n" + "".join(hours), encoding="utf-8")
    (here / "wikitext2").mkdir()
    for part in ("train", "valid"):
        (here / "wikitext2" / f"{part}.txt").write_text(TEXT if part == "train" else TEXT[:900], encoding="utf-8")


# The first pattern that fits is taken.
HERE = {
    "docs/index.md": Fixture(plain, {"2m": "2steps"}),
    "docs/choose.md": Fixture(plain),
    "docs/contract.md": Fixture(plain, runs_python=False),
    "docs/counting.md": Fixture(counted, {"/scratch": "."}, runs_python=False),
    "docs/generation.md": Fixture(with_runs, before='import regard\nrun = regard.load("runs/mine")\n'),
    "docs/lectures.md": Fixture(plain),
    "docs/release.md": Fixture(plain),
    "docs/scale.md": Fixture(plain, read=("--devices", "--workers", "--ray")),
    "docs/serving.md": Fixture(plain, runs_python=False),
    "docs/training.md": Fixture(
        recipes, {"runs/minilm": "runs/small", "runs/gpt2": "runs/small", "tail:294d": "tail:10d"}, runs_python=False
    ),
    "docs/steps/*.md": Fixture(plain),
    "benchmarks/results/*.md": Fixture(plain, read=("regard ",)),
}
